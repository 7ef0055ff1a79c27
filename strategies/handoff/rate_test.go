package handoff

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// BenchmarkRate compares the handoffs a second with how often the release script, which
// each of them takes, can be run one after the other on a connection of the same kind: the
// two take turns of 200 ms, and the median of their ratios is what counts. Without linger
// every handoff is a script; with it there may be more handoffs than scripts.
func BenchmarkRate(b *testing.B) {
	for _, linger := range []time.Duration{0, Defaults().Linger} {
		for _, processes := range []int{1, 2, 10} {
			b.Run(fmt.Sprint("linger=", linger, "/processes=", processes), func(b *testing.B) { rate(b, Options{Linger: linger}, processes) })
		}
	}
}

func rate(b *testing.B, options Options, processes int) {
	const slice, clients = 200 * time.Millisecond, 100
	server := redistest.Start(b)
	open := func() *Locker {
		l, err := Open(goredis.Config{Nodes: []goredis.Node{server.Node(b)}, Prefix: "rate:", TTL: time.Minute}, options)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = l.Close() })
		if err := l.Prepare(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		return l
	}
	var lockers []strategies.Locker
	for range processes {
		lockers = append(lockers, open())
	}
	s := newSequence(b, open())
	s.run(b, slice)
	trial.Rate(b, lockers, "key", clients, slice)
	var ratios, handoffs, scripts []float64
	for b.Loop() {
		s, h := s.run(b, slice), trial.Rate(b, lockers, "key", clients, slice)
		scripts, handoffs, ratios = append(scripts, s), append(handoffs, h), append(ratios, h/s)
	}
	b.ReportMetric(median(handoffs), "handoffs/s")
	b.ReportMetric(median(scripts), "scripts/s")
	b.ReportMetric(median(ratios), "handoffs/script")
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// sequence is one process that releases a lock to itself, again and again: each script
// queues the next place and grants it the lock.
type sequence struct {
	locker *Locker
	names  names
	owner  string
	token  int64
	n      int
}

func newSequence(b *testing.B, l *Locker) *sequence {
	s := &sequence{locker: l, names: namesOf("sequence", "rate:", false), owner: l.ids.next("sequence")}
	owner, token, err := l.redis.take(b.Context(), &s.names, l.ids.process, s.owner, milliseconds(l.config.TTL))
	if err != nil || owner != s.owner {
		b.Fatalf("take the lock: %q, %v", owner, err)
	}
	s.token = token
	return s
}

// run returns how many scripts it ran in a second.
func (s *sequence) run(b *testing.B, length time.Duration) float64 {
	l, began, first := s.locker, time.Now(), s.n
	for time.Since(began) < length {
		next := l.ids.next("sequence")
		reply, err := l.redis.run(b.Context(), releaseScript, &s.names, l.ids.process, s.owner, s.token, entry(next, l.config.TTL))
		told, _ := reply.(string)
		id, token, _, ok := l.ids.parse(told)
		if err != nil || !ok || id != next {
			b.Fatalf("it said %v, %v", reply, err)
		}
		s.owner, s.token = id, token
		s.n++
	}
	return float64(s.n-first) / time.Since(began).Seconds()
}
