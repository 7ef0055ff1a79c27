package servers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/strategies"
)

// TopologyKind describes how the nodes of a run work together.
type TopologyKind string

// These are the kinds of topology.
const (
	Single      TopologyKind = "single"
	Independent TopologyKind = "nodes"    // N nodes that do not know each other, as Redlock needs
	Replicated  TopologyKind = "replicas" // one primary and N replicas, without Sentinel
	Clustered   TopologyKind = "cluster"  // a Redis Cluster of N primaries
)

// topologyRow is one entry of the kinds table: a topology kind, its allowed node counts and how its nodes are arranged.
type topologyRow struct {
	name               TopologyKind
	least, usual, most int // limits and default of Topology.Count
	arrangement
}

// kinds lists all kinds with their node counts. A kind without a default count accepts no number. Redis does not form a
// cluster of fewer than three primaries, because fewer primaries cannot agree that a primary has failed.
var kinds = []topologyRow{
	{Single, 0, 0, 0, single{}},
	{Independent, 1, 5, 16, independent{}},
	{Replicated, 1, 2, 8, replicated{}},
	{Clustered, 3, 3, 16, clustered{}},
}

// arrangement defines how the nodes of a topology, such as a cluster, are started and connected to each other.
type arrangement interface {
	settings() []string    // settings in addition to those of every server
	ports() ([]int, error) // finds free ports for one node, the first for clients
	linked() bool          // reports whether the nodes must reach each other
	// arrange forms the topology from the started servers.
	arrange(ctx context.Context, s *Server) error
	// settled returns an error unless all nodes are in their normal state.
	settled(ctx context.Context, s *Server) error
	// spares reports whether clients can still get locks without the nodes in away.
	spares(s *Server, away []*node) bool
	unfit(strategies.Info) string // see Topology.Unfit
}

// single is the arrangement of one node.
type single struct{}

func (single) settings() []string                     { return nil }
func (single) ports() ([]int, error)                  { return launch.FreePorts(1)() }
func (single) linked() bool                           { return false }
func (single) arrange(context.Context, *Server) error { return nil }
func (single) settled(context.Context, *Server) error { return nil }
func (single) spares(_ *Server, away []*node) bool    { return len(away) == 0 }
func (single) unfit(strategies.Info) string           { return "" }

// independent is the arrangement of several nodes that do not know each other. A lock needs only a majority of the
// nodes.
type independent struct{ single }

func (independent) spares(s *Server, away []*node) bool { return len(away) <= (len(s.nodes)-1)/2 }

// Topology is a kind and its size. The zero Topology is unspecified: lockbench starts one node, and accepts any
// topology at a user's addresses.
type Topology struct {
	Kind  TopologyKind
	Count int // number of nodes, replicas or primaries; 0 means the default
}

// ParseTopology parses single, nodes:5, replicas:2 or cluster:3. Without a number, Count is 0. "" gives the zero
// Topology.
func ParseTopology(text string) (Topology, error) {
	if text == "" {
		return Topology{}, nil
	}
	var known []string
	name, number, numbered := strings.Cut(text, ":")
	for _, k := range kinds {
		usage := string(k.name)
		if k.usual > 0 {
			usage += ":N"
		}
		if known = append(known, usage); name != string(k.name) || numbered && k.usual == 0 {
			continue
		}
		if !numbered {
			return Topology{Kind: k.name}, nil
		}
		count, err := strconv.Atoi(number)
		if err != nil || count < k.least || count > k.most {
			return Topology{}, fmt.Errorf("--topology %s takes a number from %d to %d, such as %s:%d, not %q",
				k.name, k.least, k.most, k.name, k.usual, number)
		}
		return Topology{Kind: k.name, Count: count}, nil
	}
	last := len(known) - 1
	return Topology{}, fmt.Errorf("--topology must be %s or %s, not %q", strings.Join(known[:last], ", "), known[last],
		text)
}

// kind returns the entry of the kinds table. For the zero Topology it returns the entry of Single.
func (t Topology) kind() topologyRow {
	for _, k := range kinds {
		if k.name == t.Kind {
			return k
		}
	}
	return kinds[0]
}

// usual returns the topology with a missing kind or count replaced by its default.
func (t Topology) usual() Topology {
	k := t.kind()
	return Topology{k.name, cmp.Or(t.Count, k.usual)}
}

// String returns the topology in the form that ParseTopology accepts.
func (t Topology) String() string {
	if t.Count == 0 {
		return string(t.Kind)
	}
	return fmt.Sprintf("%s:%d", t.Kind, t.Count)
}

// Independent returns the number of nodes that do not know each other.
func (t Topology) Independent() int {
	if t.Kind == Independent {
		return t.usual().Count
	}
	return 1
}

// Primaries returns the number of nodes to which clients send commands on keys.
func (t Topology) Primaries() int {
	if t.Kind == Replicated {
		return 1
	}
	return t.Servers()
}

// Servers returns the number of Redis servers that the topology needs.
func (t Topology) Servers() int {
	t = t.usual()
	if t.Kind == Replicated {
		return 1 + t.Count
	}
	return max(t.Count, 1)
}

// Unfit returns the reason why a strategy cannot run on this topology; "" if it can, or if the topology is unknown.
func (t Topology) Unfit(info strategies.Info) string {
	if t.Kind == "" {
		return ""
	}
	if unfit := t.kind().unfit(info); unfit != "" && info.Nodes > 0 {
		return unfit
	}
	nodes := t.Independent()
	if info.Nodes <= nodes {
		return ""
	}
	there := "there is 1"
	if nodes > 1 {
		there = fmt.Sprintf("there are %d", nodes)
	}
	return fmt.Sprintf("it needs %d independent Redis nodes, but %s: use --topology nodes:%d, or give as many addresses",
		info.Nodes, there, max(info.Nodes, 5))
}

// checkAddressCount returns an error if the requested topology does not fit the number of the user's addresses. One
// address is enough for a cluster, because each node of a cluster announces the other nodes.
func (t Topology) checkAddressCount(addresses []*redis.UniversalOptions) error {
	needed, more := t.Servers(), ""
	if t.Count == 0 && t.Kind != Single { // any number of nodes
		needed, more = 2, " or more"
	}
	n := len(addresses)
	switch {
	case t.Kind == Clustered && addresses[0].DB != 0:
		return fmt.Errorf("--redis names database %d, but a cluster has only database 0", addresses[0].DB)
	case t.Kind == "" || t.Kind == Clustered || n == needed || n > needed && more != "":
		return nil
	}
	return fmt.Errorf("--topology %s needs %s%s, but --redis names %d: give the address of each, separated by commas",
		t, words.Count(needed, "server"), more, n)
}

// admits reports whether the topology that was found is the requested one.
func (t Topology) admits(found Topology) bool {
	return t.Kind == "" || t.Kind == found.Kind && (t.Count == 0 || t.Count == found.Count)
}

// recognise determines the topology at the user's addresses, and checks that it is the requested one.
func (s *Server) recognise(ctx context.Context, runID string, asked Topology) error {
	clustered := 0
	seen := map[string]*node{}
	for _, n := range s.nodes {
		if other := seen[n.runID]; n.runID != "" && other != nil {
			return fmt.Errorf("%w: %s and %s are the same Redis", ErrConfig, other.addr(), n.addr())
		}
		seen[n.runID] = n
		if n.software.Mode == "cluster" {
			clustered++
		}
	}
	var err error
	switch clustered {
	case 0:
		err = s.findReplicas()
	case len(s.nodes):
		err = s.findCluster(ctx, runID)
	default:
		err = fmt.Errorf("%w: %d of the %d servers are nodes of a cluster, and the others are not: "+
			"give the nodes of one cluster only", ErrConfig, clustered, len(s.nodes))
	}
	if err == nil && !asked.admits(s.topology) {
		err = fmt.Errorf("%w: --topology %s was requested, but the topology of the servers is %s", ErrConfig, asked,
			s.topology)
	}
	return err
}

// findReplicas determines whether the nodes are independent, or a primary with its replicas.
func (s *Server) findReplicas() error {
	primaries := s.primaries()
	replicas := slices.DeleteFunc(slices.Clone(s.nodes), func(n *node) bool { return n.role != replica })
	switch {
	case len(replicas) == 0 && len(primaries) == 1:
		s.topology = Topology{Kind: Single}
	case len(replicas) == 0:
		s.topology = Topology{Independent, len(primaries)}
	case len(primaries) != 1:
		return fmt.Errorf("%w: %s is a replica: give its primary's address, alone or with those of its replicas",
			ErrConfig, replicas[0].addr())
	default:
		for _, n := range replicas {
			if n.replID != primaries[0].replID {
				return fmt.Errorf("%w: %s is not a replica of %s, or not in sync with it", ErrConfig, n.addr(),
					primaries[0].addr())
			}
		}
		s.topology = Topology{Replicated, len(replicas)}
		s.nodes = slices.Concat(primaries, replicas)
		s.primary.Store(primaries[0])
	}
	return nil
}
