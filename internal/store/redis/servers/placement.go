package servers

import (
	"context"
	"slices"
	"strconv"

	"github.com/lockbench/lockbench/internal/measure"
)

// Local says whether all nodes are on this machine, so that the CPU time they use is
// among the machine's. What a tunnel brings to a loopback address is taken for one of
// them.
func (s *Server) Local() bool {
	return !slices.ContainsFunc(s.nodes, func(n *node) bool { return networkTo(n.addr()) == "remote" })
}

// serverCPUs are those that any of the nodes may run on; nil where that is not known of
// one: it is on another machine, or in a namespace of its own.
func (s *Server) serverCPUs(ctx context.Context) []int {
	var all []int
	for _, n := range s.nodes {
		cpus := n.cpus(ctx)
		if cpus == nil {
			return nil
		}
		all = append(all, cpus...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cpus are those that the node's process may run on; nil where that is not known.
func (n *node) cpus(ctx context.Context) []int {
	if networkTo(n.addr()) == "remote" {
		return nil
	}
	pid := n.pid(ctx)
	if pid == 0 {
		return nil
	}
	return measure.Affinity(pid)
}

// pid is the number of the node's process among this machine's; 0 where it is not known.
func (n *node) pid(ctx context.Context) int {
	own := n.own
	if m, ok := own.(member); ok {
		own = m.Own
	}
	switch own := own.(type) {
	case *Process:
		return own.PID()
	case *Container:
		if pid := own.PID(ctx); isServer(pid, "") {
			return pid
		}
		return 0
	}
	fields, err := readInfo(ctx, n.observer, "server")
	if err != nil {
		return 0
	}
	// A number from another namespace would be somebody else's here.
	pid, err := strconv.Atoi(fields["process_id"])
	if err != nil || !isServer(pid, fields["tcp_port"]) {
		return 0
	}
	return pid
}
