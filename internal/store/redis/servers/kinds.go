package servers

import (
	"context"
	"slices"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
)

// row is all that there is to know of a kind of topology: nothing else asks which one it
// is. What is nil is as with a single node.
type row struct {
	name               Kind
	least, usual, most int // of Topology.Count; 0 where the name alone says all

	servers     func(count int) int // Redis servers that it takes
	primaries   func(count int) int // of them, those that take commands
	independent func(count int) int // nodes that know nothing of each other
	unfit       func(strategies.Info) string

	settings []string                             // beside those of every server
	pick     launch.Picker                        // finds ports
	linked   bool                                 // the nodes reach each other
	member   func(*Server, *node, Own) Own        // what stands for a started server
	arrange  func(*Server, context.Context) error // makes a topology of what was started

	whole   bool                                 // one client reaches all nodes
	dial    func(*Server) store.Through          // what every client's connections take besides
	nudge   func(*Server, context.Context) error // before one waits until it is settled
	settled func(*Server, context.Context) error

	// dispensable says whether a run may go on without the node, be it alone; enough,
	// whether it may without so many of them.
	dispensable func(s *Server, n *node) bool
	enough      func(missing, nodes int) bool
	// spares says whether locks can still be had without the nodes at these places.
	spares func(s *Server, places []int) bool
	// firstHit is the place of the node that is hit where a fault names the first.
	firstHit func(s *Server) int
}

// kinds are all kinds of topologies. Redis refuses to make a cluster of fewer than three
// primaries: they could not agree on the failure of one.
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
			// Replicas attach at once, and nothing is written to disk for it.
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

// minority of so many nodes may be missing while the others are a majority.
func minority(nodes int) int { return (nodes - 1) / 2 }

// row is that of a topology's kind; that of Single where it was left open.
func (t Topology) row() row {
	all := kinds()
	i := slices.IndexFunc(all, func(r row) bool { return r.name == t.Kind })
	return all[max(0, i)]
}

// usage is how one writes it.
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
