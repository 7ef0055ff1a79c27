package handoff

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
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
	script := newSequence(b, server)
	var lockers []strategies.Locker
	for range processes {
		locker, err := New(strategies.Config{Nodes: []strategies.Node{server.Node(b)}, Prefix: "rate:", TTL: time.Minute}, options)
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = locker.Close() }()
		if err := locker.Prepare(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		lockers = append(lockers, locker)
	}
	script.run(b, slice)
	trial.Rate(b, lockers, "key", clients, slice)
	var ratios, handoffs, scripts []float64
	for b.Loop() {
		s, h := script.run(b, slice), trial.Rate(b, lockers, "key", clients, slice)
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

// sequence is one process that releases the lock to itself, again and again: each script
// queues the next entry and grants it the lock.
type sequence struct {
	line *line.Line
	up   chan struct{}
	done chan error // of each script
	id   string
	n    int
}

func newSequence(b *testing.B, server *redistest.Server) *sequence {
	client := server.Client(b)
	s := &sequence{up: make(chan struct{}), done: make(chan error, 1), id: uuid.NewString()}
	s.line = line.New(func(context.Context) (*redis.Client, error) { return client, nil }, s, "SUBSCRIBE", "sequence")
	s.line.Start()
	b.Cleanup(s.line.Close)
	<-s.up
	client.Set(b.Context(), "sequence:"+s.id, 1, 0)
	client.ScriptLoad(b.Context(), releaseScript.source)
	client.RPush(b.Context(), "sequence", s.name()+" 1000000000 1 1 9999999999999 -")
	return s
}

func (s *sequence) name() string { return fmt.Sprint(s.id, ":", s.n) }

// run returns how many scripts it ran in a second.
func (s *sequence) run(b *testing.B, length time.Duration) float64 {
	began, first := time.Now(), s.n
	for time.Since(began) < length {
		id := s.name()
		s.n++
		s.line.Put(s, "EVALSHA", releaseScript.Hash(), "1", "sequence", "sequence:", "PUBLISH", s.id, "1",
			id, "", s.name()+" 1 3600000 1")
		s.line.Flush()
		if err := <-s.done; err != nil {
			b.Fatal(err)
		}
	}
	return float64(s.n-first) / time.Since(began).Seconds()
}

// Answer hears of a script, which must have granted the lock.
func (s *sequence) Answer(reply line.Reply) {
	err := reply.Err
	if a := parseAnswer(reply.Text); err == nil && (a.status != 'R' || !strings.HasPrefix(string(a.grant), s.name())) {
		err = fmt.Errorf("it said %q", reply.Text)
	}
	s.done <- err
}

// Up and the others are what happens on the line.
func (s *sequence) Up(int64)       { close(s.up) }
func (s *sequence) Down(error)     {}
func (s *sequence) Message([]byte) {}
func (s *sequence) Gone()          {}
func (s *sequence) Flushed()       {}
