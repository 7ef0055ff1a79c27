package servers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/strategies"
)

// Kind says how the nodes of a run work together.
type Kind string

// The kinds.
const (
	Single      Kind = "single"
	Independent Kind = "nodes"    // N nodes that do not know each other, as Redlock needs
	Replicated  Kind = "replicas" // one primary and N replicas, without Sentinel
	Clustered   Kind = "cluster"  // a Redis Cluster of N primaries
)

// Topology is a kind and its size. The zero Topology is unspecified: lockbench starts one node, and
// accepts anything at a user's addresses.
type Topology struct {
	Kind  Kind
	Count int // nodes, replicas or primaries; 0 means the default number
}

// ParseTopology parses single, nodes:5, replicas:2 or cluster:3. Without a number it uses the default;
// "" is the zero Topology.
func ParseTopology(text string) (Topology, error) {
	if text == "" {
		return Topology{}, nil
	}
	var known []string
	name, number, numbered := strings.Cut(text, ":")
	for _, r := range kinds() {
		if known = append(known, r.usage()); name != string(r.name) || numbered && r.usual == 0 {
			continue
		}
		if !numbered {
			return Topology{Kind: r.name}, nil
		}
		count, err := strconv.Atoi(number)
		if err != nil || count < r.least || count > r.most {
			return Topology{}, fmt.Errorf("--topology %s takes a number from %d to %d, such as %s:%d, not %q",
				r.name, r.least, r.most, r.name, r.usual, number)
		}
		return Topology{Kind: r.name, Count: count}, nil
	}
	last := len(known) - 1
	return Topology{}, fmt.Errorf("--topology must be %s or %s, not %q", strings.Join(known[:last], ", "), known[last], text)
}

// usual fills in the defaults.
func (t Topology) usual() Topology {
	r := t.row()
	t.Kind = r.name
	if t.Count == 0 {
		t.Count = r.usual
	}
	return t
}

// String writes the topology in the form of ParseTopology.
func (t Topology) String() string {
	if t.Count == 0 {
		return string(t.Kind)
	}
	return fmt.Sprintf("%s:%d", t.Kind, t.Count)
}

// Independent returns the number of nodes that do not know each other.
func (t Topology) Independent() int { return t.row().independent(t.usual().Count) }

// Primaries returns the number of nodes that take commands.
func (t Topology) Primaries() int { return t.row().primaries(t.usual().Count) }

// Servers returns the number of Redis servers that the topology needs.
func (t Topology) Servers() int { return t.row().servers(t.usual().Count) }

// Unfit says why a strategy cannot run there; "" if it can, or if the topology is unknown.
func (t Topology) Unfit(info strategies.Info) string {
	if t.Kind == "" {
		return ""
	}
	if unfit := t.row().unfit; unfit != nil && info.Nodes > 0 && unfit(info) != "" {
		return unfit(info)
	}
	nodes := t.Independent()
	if info.Nodes <= nodes {
		return ""
	}
	there := "there is 1"
	if nodes > 1 {
		there = fmt.Sprintf("there are %d", nodes)
	}
	return fmt.Sprintf("it needs %d independent Redis nodes, %s (--topology nodes:%d)", info.Nodes, there, max(info.Nodes, 5))
}

// admits says whether the found topology is as requested.
func (t Topology) admits(found Topology) bool {
	return t.Kind == "" || t.Kind == found.Kind && (t.Count == 0 || t.Count == found.Count)
}
