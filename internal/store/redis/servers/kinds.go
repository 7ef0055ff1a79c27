package servers

import (
	"context"
	"slices"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
)

// row describes a kind of topology; all code that depends on the kind is here. A nil field means
// the behaviour of a single node.
type row struct {
	name               Kind
	least, usual, most int // of Topology.Count; 0 if the kind has no number

	servers     func(count int) int // Redis servers that it needs
	primaries   func(count int) int // those of them that take commands
	independent func(count int) int // nodes that do not know each other
	unfit       func(strategies.Info) string

	settings []string                             // in addition to those of every server
	pick     launch.Picker                        // finds ports
	linked   bool                                 // the nodes must reach each other
	member   func(*Server, *node, Own) Own        // wraps a started server
	arrange  func(*Server, context.Context) error // forms the topology from the started servers

	whole   bool                                 // one client reaches all nodes
	dial    func(*Server) store.Through          // wraps every client's connections
	nudge   func(*Server, context.Context) error // called before the wait for settled
	settled func(*Server, context.Context) error

	// dispensable says whether a run can go on without this node alone; enough, whether it can
	// without this many nodes.
	dispensable func(s *Server, n *node) bool
	enough      func(missing, nodes int) bool
	// spares says whether clients can still get locks without the nodes at these places.
	spares func(s *Server, places []int) bool
	// firstHit returns the place of the node that a fault of node 0 hits.
	firstHit func(s *Server) int
}

// kinds returns all kinds of topologies. Redis does not form a cluster of fewer than three
// primaries: fewer cannot agree on the failure of one.
func kinds() []row {
	one := func(int) int { return 1 }
	all := func(count int) int { return count }
	return []row{
		{name: Single, servers: one, primaries: one, independent: one},
		{
			name: Independent, least: 1, usual: 5, most: 16, servers: all, primaries: all, independent: all,
			dispensable: func(s *Server, _ *node) bool { return len(s.nodes) > 2 },
			enough:      func(missing, nodes int) bool { return missing <= minority(nodes) },
			spares:      func(s *Server, places []int) bool { return len(places) <= minority(len(s.nodes)) },
		},
		{
			name: Replicated, least: 1, usual: 2, most: 8, servers: func(count int) int { return 1 + count }, primaries: one, independent: one,
			// Replicas attach at once and without a file on disk.
			settings: []string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"},
			linked:   true, member: (*Server).newMember, arrange: (*Server).replicate,
			dial: func(s *Server) store.Through { return s.toPrimary }, nudge: (*Server).nudge, settled: (*Server).inSync,
			dispensable: func(s *Server, n *node) bool { return n != s.primary.Load() },
			spares:      func(s *Server, places []int) bool { return !slices.Contains(places, s.Primary()) },
			firstHit:    (*Server).Primary,
		},
		{
			name: Clustered, least: 3, usual: 3, most: 16, servers: all, primaries: all, independent: one,
			unfit:    func(info strategies.Info) string { return info.NoCluster },
			settings: []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "1000"},
			pick:     freeClusterPort, linked: true,
			arrange: func(s *Server, ctx context.Context) error { return formCluster(ctx, s.nodes) },
			whole:   true, settled: (*Server).serving,
			dispensable: func(_ *Server, n *node) bool { return n.role == replica },
			spares: func(s *Server, places []int) bool {
				return !slices.ContainsFunc(places, func(place int) bool { return s.nodes[place].role != replica })
			},
		},
	}
}

// minority is the number of nodes that may be missing while the others are a majority.
func minority(nodes int) int { return (nodes - 1) / 2 }

// row returns the row of the topology's kind; without a kind, that of Single.
func (t Topology) row() row {
	all := kinds()
	i := slices.IndexFunc(all, func(r row) bool { return r.name == t.Kind })
	return all[max(0, i)]
}

// usage returns the kind as a user writes it.
func (r row) usage() string {
	if r.usual == 0 {
		return string(r.name)
	}
	return string(r.name) + ":N"
}

func (r row) picker() launch.Picker {
	if r.pick == nil {
		return launch.FreePort
	}
	return r.pick
}
