package zookeeper

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/results"
)

// restartCounters continues a server's counters over its restarts, at which they are reset.
type restartCounters struct {
	mu            sync.Mutex
	told          bool // mntr has answered
	reads, writes grown
	received      grown // bytes
	cpu           processTime
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

// processTime is the CPU time of a server's processes, one after the other, in seconds.
type processTime struct {
	pid       int // 0 if none is known
	last, sum float64
}

// enter notes what a process has used. Readings of one process may go back a little: they count the
// ticks of threads that have ended, and the nanoseconds of the others.
func (t *processTime) enter(pid int, now float64) {
	if pid != t.pid {
		t.pid, t.last = pid, 0
	}
	t.sum += max(0, now-t.last)
	t.last = max(t.last, now)
}

// entered notes the CPU time of a server that lockbench started.
func (l *restartCounters) entered(o launch.Started) {
	pid, cpu := o.PID(), o.CPU()
	l.mu.Lock()
	defer l.mu.Unlock()
	if pid > 0 && cpu != nil {
		l.cpu.enter(pid, *cpu)
	}
}

// read reads a server's counters.
func (s *Server) read(ctx context.Context, place int) error {
	addr, l := s.node.Servers[place], s.counters[place]
	answer, err := ask(ctx, s.observed.dial, addr, "mntr")
	if err == nil && strings.Contains(answer, "not currently serving") {
		err = errNoQuorum
	}
	counted := fields(answer)
	var more status
	if _, told := counted["zk_num_alive_connections"]; err == nil && !told { // a user's server may allow only srvr
		more, err = look(ctx, s.observed.dial, addr)
	}
	if len(s.own) > 0 {
		l.entered(s.own[place])
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
	if l.cpu.pid > 0 {
		cpu := l.cpu.sum
		r.CPU = &cpu
	}
	return r, l.role
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
		return results.Reading{}, fmt.Errorf("%w: read the counters: %w", ErrUnreachable, firstOf(problems))
	}
	sum, _ := s.counters[0].reading()
	for place, l := range s.counters {
		one, role := l.reading()
		if place > 0 {
			nodes := sum.Nodes
			sum = sum.Plus(one)
			sum.Nodes = nodes
		}
		if len(s.counters) > 1 {
			sum.Nodes = append(sum.Nodes, results.NodeReading{Address: s.node.Servers[place], Role: role, Reading: one})
		}
	}
	sum.At = began.Add(time.Since(began) / 2)
	sum.Observer = results.ObserverCounts{RoundTrips: s.observed.Requests(), BytesOut: s.observed.Written(), BytesIn: s.observed.Read()}
	sum.RoundTrips, sum.ClientBytesOut, sum.ClientBytesIn = sum.Observer.RoundTrips, sum.Observer.BytesOut, sum.Observer.BytesIn
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.traffic {
		sum.RoundTrips += t.Requests()
		sum.ClientBytesOut += t.Written()
		sum.ClientBytesIn += t.Read()
	}
	return sum, nil
}

func firstOf(problems []error) error {
	for _, problem := range problems {
		if problem != nil {
			return problem
		}
	}
	return nil
}
