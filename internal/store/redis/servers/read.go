package servers

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// Read reads the counters of all nodes at the same time and adds them up. If there are several
// nodes, it also lists each one. Unknown counters are nil or left out. A node that is down has
// its last counts; it is an error only if the others cannot go on without it.
func (s *Server) Read(ctx context.Context) (results.Reading, error) {
	started := time.Now()
	var bus map[netip.AddrPort]int64
	if s.nodes[0].software.Mode == "cluster" {
		bus = received()
	}
	err := s.onEveryNode(ctx, s.nodes, func(ctx context.Context, n *node) error {
		fields, err := n.counters(ctx)
		if err != nil {
			return fmt.Errorf("%w: read the counters of %s: %w", ErrUnreachable, n.addr(), err)
		}
		counted := reading(fields)
		counted.BusReceived = n.busBytes(bus)
		n.kept.Enter(fields["run_id"], counted)
		return nil
	})
	if err != nil {
		return results.Reading{}, err
	}
	var nodes []results.NodeReading
	for _, n := range s.nodes {
		if one, known := n.kept.Read(); known {
			nodes = append(nodes, results.NodeReading{Address: untrusted.Printable(n.addr()), Role: s.roleOf(n), Reading: one})
		}
	}
	sum := store.Sum(nodes)
	if len(s.nodes) > 1 {
		sum.Nodes = nodes
	}
	sum.IOThreads = s.ioThreads()
	sum.At = started.Add(time.Since(started) / 2)
	s.meter.Enter(&sum)
	return sum, nil
}

// ioThreads returns the largest number of a node; 0 if not known.
func (s *Server) ioThreads() int {
	most := 0
	for _, n := range s.nodes {
		if threads := n.software.ioThreads; threads != nil {
			most = max(most, *threads)
		}
	}
	return most
}

// roleOf returns a node's present role.
func (s *Server) roleOf(n *node) string {
	switch s.primary.Load() {
	case nil:
		return n.role
	case n:
		return primary
	default:
		return replica
	}
}

// counters reads everything that a node counts.
func (n *node) counters(ctx context.Context) (replies.Info, error) {
	pipe := n.observer.Pipeline()
	asked := infos(ctx, pipe, "server", "clients", "memory", "stats", "cpu", "commandstats")
	if n.software.Mode == "cluster" {
		asked = append(asked, pipe.ClusterInfo(ctx))
	}
	return sent(ctx, pipe, asked)
}

// infos requests the sections one by one: before Redis 7, INFO takes only one.
func infos(ctx context.Context, pipe redis.Pipeliner, sections ...string) []*redis.StringCmd {
	var asked []*redis.StringCmd
	for _, section := range sections {
		asked = append(asked, pipe.Info(ctx, section))
	}
	return asked
}

// sent sends the pipeline and parses its replies.
func sent(ctx context.Context, pipe redis.Pipeliner, asked []*redis.StringCmd) (replies.Info, error) {
	_, err := pipe.Exec(ctx)
	if err != nil && !refused(err) {
		return nil, err
	}
	var text strings.Builder
	for _, reply := range asked {
		text.WriteString(reply.Val() + "\n")
	}
	return replies.ParseInfo(text.String()), nil
}

func reading(fields replies.Info) results.Reading {
	return results.Reading{
		Commands:  fields.Calls(),
		BytesIn:   fields.Integer("total_net_input_bytes"),
		FromNodes: value(fields.Integer("total_net_repl_input_bytes")),
		BytesOut:  fields.Integer("total_net_output_bytes"),
		CPU:       fields.Seconds("used_cpu_user", "used_cpu_sys"),
		MainCPU:   fields.Seconds("used_cpu_user_main_thread", "used_cpu_sys_main_thread"),
		Evictions: value(fields.Integer("evicted_keys")),
		Clients:   value(fields.Integer("connected_clients")),
		Memory:    value(fields.Integer("used_memory")),

		BusPublished: published(fields),
	}
}

// published returns the messages that a node of a cluster has sent to others for PUBLISH and
// SPUBLISH; nil without CLUSTER INFO, which leaves out kinds that were never sent.
func published(fields replies.Info) *int64 {
	if fields.Integer("cluster_stats_messages_sent") == nil {
		return nil
	}
	sum := value(fields.Integer("cluster_stats_messages_publish_sent")) + value(fields.Integer("cluster_stats_messages_publishshard_sent"))
	return &sum
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
