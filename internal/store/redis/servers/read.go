package servers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// Read reads the counters of all nodes at the same time and adds them up. If there are several nodes, it also lists the
// counters of each node. Unknown counters are nil or omitted. If a node is down, Read uses the node's last known
// values. It returns an error only if the other nodes cannot work without that node.
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
			nodes = append(nodes, results.NodeReading{
				Address: untrusted.Printable(n.addr()), Role: s.roleOf(n),
				Reading: one,
			})
		}
	}
	sum := s.meter.Reading(started, nodes)
	if len(s.nodes) > 1 { // even if only one has ever answered
		sum.Nodes = nodes
	}
	sum.IOThreads = s.ioThreads()
	return sum, nil
}

// ioThreads returns the largest number of I/O threads of any node; 0 if not known.
func (s *Server) ioThreads() int {
	most := 0
	for _, n := range s.nodes {
		if threads := n.software.ioThreads; threads != nil {
			most = max(most, *threads)
		}
	}
	return most
}

// roleOf returns the role of a node. In a replicated topology it is the current role. In any other topology it is the
// role that the node had when lockbench connected to it.
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

// counters reads all counters of a node in one pipeline. It omits the counters that the server refuses.
func (n *node) counters(ctx context.Context) (replies.Info, error) {
	pipe := n.observer.Pipeline()
	asked := infos(ctx, pipe, "server", "clients", "memory", "stats", "replication", "cpu", "commandstats")
	if n.software.Mode == "cluster" {
		asked = append(asked, pipe.ClusterInfo(ctx))
	}
	return sent(ctx, pipe, asked)
}

// infos requests the sections one by one, because INFO accepts several only since Redis 7.
func infos(ctx context.Context, pipe redis.Pipeliner, sections ...string) []*redis.StringCmd {
	var asked []*redis.StringCmd
	for _, section := range sections {
		asked = append(asked, pipe.Info(ctx, section))
	}
	return asked
}

// sent sends the pipeline and parses the replies to the commands in asked. It omits refused commands.
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

// busBytes returns the number of bytes that the other nodes of a cluster sent to this node over the cluster bus. Redis
// itself counts only messages. It returns nil if the node's sockets are not visible on this machine.
func (n *node) busBytes(received map[netip.AddrPort]int64) *int64 {
	at, err := netip.ParseAddrPort(n.addr())
	if err != nil {
		return nil
	}
	if bytes, ok := received[netip.AddrPortFrom(at.Addr().Unmap(), at.Port()+redisserver.BusDistance)]; ok {
		return &bytes
	}
	return nil
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
		Role:      fields["role"],
		History:   history(fields),

		BusPublished: published(fields),
	}
}

// history returns the ID of the replication history, or "" if the history did not begin with a promotion. After a
// promotion Redis also keeps the ID of the previous history. A primary that has had no replica for an hour takes a new
// ID too, but keeps no previous ID.
func history(fields replies.Info) string {
	if strings.Trim(fields["master_replid2"], "0") == "" {
		return ""
	}
	return fields["master_replid"]
}

// published returns the number of messages that a node of a cluster has sent to other nodes for PUBLISH and SPUBLISH;
// nil if the node did not reply to CLUSTER INFO. CLUSTER INFO omits kinds of messages that were never sent.
func published(fields replies.Info) *int64 {
	if fields.Integer("cluster_stats_messages_sent") == nil {
		return nil
	}
	sum := value(fields.Integer("cluster_stats_messages_publish_sent")) +
		value(fields.Integer("cluster_stats_messages_publishshard_sent"))
	return &sum
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// onEveryNode calls do concurrently for every node. A node that does not reply causes an error only if the other nodes
// cannot work without it. If they can, the node is skipped after a second.
func (s *Server) onEveryNode(ctx context.Context, nodes []*node, do func(ctx context.Context, n *node) error) error {
	problems := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range nodes {
		wg.Go(func() {
			if s.spares(n) {
				problems[i] = n.ping(ctx, patience)
			}
			if problems[i] == nil {
				problems[i] = do(ctx, n)
			}
			if errors.Is(problems[i], ErrUnreachable) {
				n.kept.Miss()
			}
		})
	}
	wg.Wait()
	return s.bearable(nodes, problems)
}

// gather calls ask for every node, as onEveryNode does, and calls add with each result, never concurrently.
func gather[T any](
	ctx context.Context, s *Server, ask func(context.Context, *node) (T, error), add func(T),
) error {
	var mu sync.Mutex
	return s.onEveryNode(ctx, s.nodes, func(ctx context.Context, n *node) error {
		answer, err := ask(ctx, n)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			add(answer)
		}
		return err
	})
}

// bearable returns nil if clients can get locks without the unreachable nodes and no node has another error.
func (s *Server) bearable(nodes []*node, problems []error) error {
	var missing []*node
	var serious []error
	for i, problem := range problems {
		if errors.Is(problem, ErrUnreachable) {
			missing = append(missing, nodes[i])
		} else {
			serious = append(serious, problem)
		}
	}
	if len(missing) > 0 && !s.spares(missing...) {
		return errors.Join(problems...)
	}
	return errors.Join(serious...)
}

// ping sends a PING to a node. If within is 0, only ctx and the timeouts of the client limit the time.
func (n *node) ping(ctx context.Context, within time.Duration) error {
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	if err := n.observer.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("%w: ping %s: %w", ErrUnreachable, n.addr(), err)
	}
	return nil
}

// Ping returns nil if enough nodes reply for locks to work: a majority of independent nodes, the primary, or all
// primaries of a cluster.
func (s *Server) Ping(ctx context.Context) error {
	return s.onEveryNode(ctx, s.nodes, func(ctx context.Context, n *node) error { return n.ping(ctx, 0) })
}

// Limits returns the lowest connection limit and the largest number of open connections of all nodes. It changes no
// limit.
func (s *Server) Limits(ctx context.Context) (store.Limits, error) {
	var tightest store.Limits
	err := gather(ctx, s, func(ctx context.Context, n *node) (store.Limits, error) {
		limits, err := n.limits(ctx)
		return limits, unreachable("read the limits of", n, err)
	}, func(limits store.Limits) {
		if most := tightest.MaxClients; most == 0 || limits.MaxClients > 0 && limits.MaxClients < most {
			tightest.MaxClients = limits.MaxClients
		}
		tightest.Connected = max(tightest.Connected, limits.Connected)
	})
	if err != nil {
		return store.Limits{}, err
	}
	return tightest, nil
}

func (n *node) limits(ctx context.Context) (store.Limits, error) {
	fields, err := readInfo(ctx, n.observer, "clients")
	if err != nil {
		return store.Limits{}, err
	}
	limits := store.Limits{
		MaxClients: value(fields.Integer("maxclients")),
		Connected:  value(fields.Integer("connected_clients")),
	}
	if limits.MaxClients == 0 { // before Redis 7, or if INFO is refused
		config, err := n.observer.ConfigGet(ctx, "maxclients").Result()
		if err != nil && !refused(err) {
			return store.Limits{}, err
		}
		limits.MaxClients, _ = strconv.ParseInt(config["maxclients"], 10, 64)
	}
	return limits, nil
}

// durability returns which confirmed writes a crash of the node may lose, in the form of results.Redis. It ignores
// snapshots, because a snapshot may be minutes old.
func (n *node) durability(ctx context.Context) string {
	fields, err := readInfo(ctx, n.observer, "persistence")
	if err != nil || fields["aof_enabled"] == "" {
		return ""
	}
	if fields["aof_enabled"] == "0" {
		return string(store.InMemory)
	}
	config, err := n.observer.ConfigGet(ctx, "appendfsync").Result()
	if err != nil {
		return ""
	}
	switch config["appendfsync"] {
	case "always":
		return string(store.Synced)
	case "everysec":
		return "every second"
	}
	return "when the operating system decides"
}

// Local reports whether all nodes run on this machine. If they do, the CPU time of the machine includes that of the
// nodes. A server behind a tunnel on a loopback address counts as local.
func (s *Server) Local() bool {
	return !slices.ContainsFunc(s.nodes, func(n *node) bool { return store.Remote(n.addr()) })
}

// serverCPUs returns the CPUs on which any of the nodes may run. It returns nil if the CPUs of a node are not known,
// for example because the node runs on another machine or in another PID namespace.
func (s *Server) serverCPUs(ctx context.Context) []int {
	var all []int
	for _, n := range s.nodes {
		pid := n.pid(ctx)
		if pid == 0 {
			return nil
		}
		all = append(all, measure.Affinity(pid)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pid returns the node's process ID on this machine; 0 if not known.
func (n *node) pid(ctx context.Context) int {
	switch {
	case n.own != nil:
		return n.own.PID()
	case store.Remote(n.addr()):
		return 0
	}
	fields, err := readInfo(ctx, n.observer, "server")
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(fields["process_id"])
	if err != nil || !isServer(pid, fields["tcp_port"]) {
		return 0
	}
	return pid
}

// isServer reports whether the process on this machine with this ID is a Redis whose command line contains the port. An
// ID that a server reports from another PID namespace could belong to any process here.
func isServer(pid int, port string) bool {
	if pid <= 0 || !launch.Runs(pid, redisserver.Programs...) {
		return false
	}
	title, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(title, []byte(port))
}
