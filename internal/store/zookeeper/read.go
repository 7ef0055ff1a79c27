package zookeeper

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// restartCounters continues a server's counters over its restarts, at which they are reset.
type restartCounters struct {
	mu            sync.Mutex
	told          bool // mntr has answered
	reads, writes grown
	received      grown // bytes
	connections   int64
	role          string
}

// grown is the sum of a counter that may be reset.
type grown struct{ last, sum int64 }

func (g *grown) enter(now int64) {
	if now < g.last {
		g.last = 0
	}
	g.sum += now - g.last
	g.last = now
}

// read reads a server's counters.
func (s *Server) read(ctx context.Context, place int) error {
	addr, l := s.node.Servers[place], s.counters[place]
	answer, err := ask(ctx, s.observe, addr, "mntr")
	if err == nil && strings.Contains(answer, "not currently serving") {
		err = errNoQuorum
	}
	counted := fields(answer)
	var more status
	if _, told := counted["zk_num_alive_connections"]; err == nil && !told { // a user's server may allow only srvr
		more, err = look(ctx, s.observe, addr)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.connections = 0
		return fmt.Errorf("%s: %w", addr, err)
	}
	if more.mode != "" {
		l.connections, l.role = more.connections, more.mode
		return nil
	}
	l.told = true
	l.connections, l.role = counted["zk_num_alive_connections"], roleIn(answer)
	l.reads.enter(counted["zk_cnt_readlatency"])
	l.writes.enter(counted["zk_cnt_updatelatency"])
	l.received.enter(counted["zk_bytes_received_count"])
	return nil
}

// roleIn returns leader, follower or standalone.
func roleIn(mntr string) string {
	_, rest, _ := strings.Cut(mntr, "zk_server_state\t")
	role, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(role)
}

// reading returns the sums and the role.
func (l *restartCounters) reading() (results.Reading, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// One connection is the one that asks.
	r := results.Reading{Clients: max(0, l.connections-1)}
	if l.told {
		received := l.received.sum
		r.BytesIn = &received
		r.Commands = map[string]int64{"read": l.reads.sum, "write": l.writes.sum}
	}
	return r, l.role
}

// reading returns a server's sums and its role.
func (s *Server) reading(place int) (results.Reading, string) {
	r, role := s.counters[place].reading()
	if len(s.own) > 0 {
		r.CPU = s.own[place].CPU()
	}
	return r, role
}

// Read reads the counters of all servers at the same time and adds them up. Only the server of a client
// counts its writes; heartbeats count as reads. A server that is down has its last counts.
func (s *Server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	problems := make([]error, len(s.counters))
	var all sync.WaitGroup
	for place := range s.counters {
		all.Go(func() { problems[place] = s.read(ctx, place) })
	}
	all.Wait()
	answered := 0
	for _, problem := range problems {
		if problem == nil {
			answered++
		}
	}
	if !s.enough(answered) {
		return results.Reading{}, fmt.Errorf("%w: read the counters: %w", ErrUnreachable, cmp.Or(problems...))
	}
	var nodes []results.NodeReading
	for place := range s.counters {
		one, role := s.reading(place)
		nodes = append(nodes, results.NodeReading{Address: s.node.Servers[place], Role: role, Reading: one})
	}
	sum := store.Sum(nodes)
	if len(nodes) > 1 {
		sum.Nodes = nodes
	}
	sum.At = began.Add(time.Since(began) / 2)
	s.meter.Enter(&sum)
	return sum, nil
}
