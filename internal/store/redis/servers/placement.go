package servers

import (
	"context"
	"slices"
	"strconv"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
)

// Local says whether all nodes are on this machine, so that the machine's CPU time includes theirs.
// A server behind a tunnel on a loopback address counts as local.
func (s *Server) Local() bool {
	return !slices.ContainsFunc(s.nodes, func(n *node) bool { return store.Remote(n.addr()) })
}

// serverCPUs returns the CPUs on which any of the nodes may run; nil if that is unknown for one,
// such as on another machine or in a namespace of its own.
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

// cpus returns the CPUs on which the node's process may run; nil if not known.
func (n *node) cpus(ctx context.Context) []int {
	if store.Remote(n.addr()) {
		return nil
	}
	pid := n.pid(ctx)
	if pid == 0 {
		return nil
	}
	return measure.Affinity(pid)
}

// pid returns the node's process ID on this machine; 0 if not known.
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
	// An ID from another namespace would be another process here.
	pid, err := strconv.Atoi(fields["process_id"])
	if err != nil || !isServer(pid, fields["tcp_port"]) {
		return 0
	}
	return pid
}
