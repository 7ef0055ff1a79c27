package servers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/strategies"
)

// Kind says how the nodes of a run belong together.
type Kind string

// The kinds.
const (
	Single      Kind = "single"
	Independent Kind = "nodes"    // N nodes that know nothing of each other, as Redlock needs
	Replicated  Kind = "replicas" // one primary and N replicas, without Sentinel
	Clustered   Kind = "cluster"  // a Redis Cluster of N primaries
)

// Topology is a kind and its size. The zero Topology leaves it open: one node
// where lockbench starts it, whatever is there at a user's addresses.
type Topology struct {
	Kind  Kind
	Count int // nodes, replicas or primaries; 0 is the usual number
}

// sizes are what a kind of topology may be of; usual is what its name alone
// means. Redis refuses to make a cluster of fewer than three primaries: they
// could not agree on the failure of one.
var sizes = []struct {
	kind               Kind
	least, usual, most int
}{
	{Independent, 1, 5, 16},
	{Replicated, 1, 2, 8},
	{Clustered, 3, 3, 16},
}

// ParseTopology reads single, nodes:5, replicas:2 or cluster:3; without a number
// it is the usual one, and "" is the zero Topology.
func ParseTopology(text string) (Topology, error) {
	switch text {
	case "":
		return Topology{}, nil
	case string(Single):
		return Topology{Kind: Single}, nil
	}
	name, number, numbered := strings.Cut(text, ":")
	for _, size := range sizes {
		if name != string(size.kind) {
			continue
		}
		if !numbered {
			return Topology{Kind: size.kind}, nil
		}
		count, err := strconv.Atoi(number)
		if err != nil || count < size.least || count > size.most {
			return Topology{}, fmt.Errorf("--topology %s takes a number from %d to %d, such as %s:%d, not %q",
				size.kind, size.least, size.most, size.kind, size.usual, number)
		}
		return Topology{Kind: size.kind, Count: count}, nil
	}
	return Topology{}, fmt.Errorf("--topology must be single, nodes:N, replicas:N or cluster:N, not %q", text)
}

// usual fills in what was left open.
func (t Topology) usual() Topology {
	if t.Kind == "" {
		t.Kind = Single
	}
	for _, size := range sizes {
		if t.Kind == size.kind && t.Count == 0 {
			t.Count = size.usual
		}
	}
	return t
}

// String writes it as ParseTopology reads it.
func (t Topology) String() string {
	if t.Count == 0 {
		return string(t.Kind)
	}
	return fmt.Sprintf("%s:%d", t.Kind, t.Count)
}

// Independent is the number of nodes that know nothing of each other.
func (t Topology) Independent() int {
	if t = t.usual(); t.Kind == Independent {
		return t.Count
	}
	return 1
}

// Primaries is the number of nodes that take commands.
func (t Topology) Primaries() int {
	if t = t.usual(); t.Kind == Independent || t.Kind == Clustered {
		return t.Count
	}
	return 1
}

// Servers is how many Redis servers it takes.
func (t Topology) Servers() int {
	switch t = t.usual(); t.Kind {
	case Independent, Clustered:
		return t.Count
	case Replicated:
		return 1 + t.Count
	default:
		return 1
	}
}

// Unfit is why a strategy cannot run there; "" if it can, or the topology is not known.
func (t Topology) Unfit(info strategies.Info) string {
	if t.Kind == "" {
		return ""
	}
	if t.Kind == Clustered && info.Nodes > 0 && info.NoCluster != "" {
		return info.NoCluster
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

// admits says whether what was asked for is what was found.
func (t Topology) admits(found Topology) bool {
	return t.Kind == "" || t.Kind == found.Kind && (t.Count == 0 || t.Count == found.Count)
}

// settings are what its servers need beside those of every server.
func (t Topology) settings() []string {
	switch t.Kind {
	case Replicated:
		// Replicas attach at once, and nothing is written to disk for it.
		return []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"}
	case Clustered:
		return []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000"}
	default:
		return nil
	}
}
