package driver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Serve is the main loop of a driver for a lock in Go. It reads lockbench's requests from in and writes the responses
// to out. It returns after the request close or at the end of in. open opens the lock on its servers.
func Serve(in io.Reader, out io.Writer, v strategies.Variant,
	open func(goredis.Config) (strategies.Locker, error),
) error {
	s := &served{
		out: json.NewEncoder(out), variant: v, open: open, leases: map[int64]strategies.Lease{},
		calls: map[int64]context.CancelFunc{},
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return s.close()
		}
		var q question
		if err := json.Unmarshal(line, &q); err != nil {
			return fmt.Errorf("parse a request from lockbench: %w", err)
		}
		if q.Do == "close" {
			return s.close()
		}
		s.answer(q)
	}
}

// served is the state of a driver that runs Serve.
type served struct {
	variant strategies.Variant
	open    func(goredis.Config) (strategies.Locker, error)
	locker  strategies.Locker

	mu      sync.Mutex
	out     *json.Encoder
	leases  map[int64]strategies.Lease
	calls   map[int64]context.CancelFunc // running calls of the lock, by the ID of the request
	stopped chan struct{}                // closed to end the run
}

func (s *served) close() error {
	if s.locker == nil {
		return nil
	}
	return s.locker.Close()
}

func (s *served) say(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(a) // it fails if lockbench has ended; then in ends too
}

func (s *served) answer(q question) {
	a := answer{ID: q.ID}
	var err error
	switch q.Do {
	case "hello":
		info := s.variant.Info()
		a = answer{
			ID: q.ID, Protocol: Version, Name: s.variant.Name(), Runtime: "in Go", Caveat: info.Caveat,
			Capacity: &info.Capacity, Nodes: &info.Nodes, MostRuns: info.MaxInstances,
			Keys: info.Keys, Keeps: info.Persistent, Format: info.Format, Extends: true,
			Connects: ways(),
		}
		for name, claimed := range map[string]bool{
			"exclusion": info.Claims.Exclusion, "recovery": info.Claims.Recovery, "fifo": info.Claims.FIFO,
			"bounded": info.Claims.Bounded, "fencing": info.Claims.Fencing, "watchdog": info.Claims.Watchdog,
		} {
			if claimed {
				a.Claims = append(a.Claims, name)
			}
		}
	case "clock":
		a.Now = monotonic()
	case "open":
		c := goredis.Config{Prefix: q.Prefix, TTL: time.Duration(q.TTL) * time.Millisecond, Callers: q.Callers}
		if c.Nodes, err = dial(q); err == nil {
			s.locker, err = s.open(c)
		}
	case "run":
		s.stopped = make(chan struct{})
		go s.run(q) // ends with its clients
		return
	case "stop":
		close(s.stopped)
		return
	case "acquire", "release", "extend":
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		s.calls[q.ID] = cancel
		s.mu.Unlock()
		go func() { // ends with the call
			if q.Do == "acquire" {
				s.say(s.acquire(ctx, q))
			} else {
				s.say(s.use(ctx, q))
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			cancel()
			delete(s.calls, q.ID)
		}()
		return
	case "cancel":
		s.mu.Lock()
		defer s.mu.Unlock()
		if cancel := s.calls[q.Call]; cancel != nil {
			cancel()
		}
		return
	default:
		err = fmt.Errorf("%w: %s", errors.ErrUnsupported, q.Do)
	}
	if err != nil {
		a.Error = err.Error()
	}
	s.say(a)
}

// acquire acquires the lock, within the timeout of the request if it has one, and returns the response.
func (s *served) acquire(ctx context.Context, q question) answer {
	lease, err := engine.Acquire(ctx, s.locker, *q.Key, within(q.Timeout))
	if err != nil {
		return answer{ID: q.ID, Error: string(engine.ErrorOf(ctx, err, q.Timeout != nil))}
	}
	a := answer{ID: q.ID, Lease: q.ID, Token: tokenOf(lease), Until: untilOf(lease)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases[q.ID] = lease
	if watched, ok := strategies.As[strategies.Watched](lease); ok {
		a.Watched = true
		go func() { // ends with the program, if the lease is not lost
			<-watched.Lost()
			s.say(answer{ID: q.ID, Lost: true})
		}()
	}
	return a
}

// use releases or extends a lease and returns the response.
func (s *served) use(ctx context.Context, q question) answer {
	s.mu.Lock()
	lease := s.leases[q.Lease]
	s.mu.Unlock()
	err := errors.ErrUnsupported
	if extender, ok := strategies.As[strategies.Extender](lease); ok && q.Do == "extend" {
		err = extender.Extend(ctx, time.Duration(q.TTL)*time.Millisecond)
	} else if lease != nil && q.Do == "release" {
		err = lease.Release(ctx)
	}
	if err != nil {
		return answer{ID: q.ID, Error: string(engine.ErrorOf(ctx, err, false))}
	}
	return answer{ID: q.ID, Until: untilOf(lease)}
}

func tokenOf(lease strategies.Lease) *int64 {
	fenced, ok := strategies.As[strategies.Fenced](lease)
	if !ok {
		return nil
	}
	return new(fenced.FencingToken())
}

func untilOf(lease strategies.Lease) *int64 {
	timed, ok := strategies.As[strategies.Timed](lease)
	if !ok {
		return nil
	}
	return new(monotonic() + int64(time.Until(timed.ValidUntil())))
}

// mostAtOnce is the maximum number of cycles in one line. It keeps lines shorter than longestLine.
const mostAtOnce = 2000

// run executes a run request. It runs the clients until the end of the run and writes their cycles as responses. The
// last response reports that all clients have stopped.
func (s *served) run(q question) {
	a := engine.Assignment{Clock: measure.NewClock(), Stopped: s.stopped, Keys: q.Keys, Timeout: within(q.Timeout)}
	ahead := ahead(a.Clock)
	a.Start, a.Stop = q.Start-ahead, q.Stop-ahead
	for _, c := range q.Clients {
		a.Clients = append(a.Clients, engine.AssignedClient{ID: c[0], First: c[1] % len(q.Steps)})
	}
	for _, step := range q.Steps {
		a.Steps = append(a.Steps, engine.Step{
			Key: int(step[0]), Hold: time.Duration(step[1]), Think: time.Duration(step[2]),
		})
	}
	report := func(made []engine.Cycle) error {
		var all []cycle
		for _, c := range made {
			one := cycle{
				Client: c.Client, Key: a.Steps[c.Step].Key, Asked: c.Asked + ahead, Done: c.Done + ahead,
				Token: c.Token,
			}
			if c.Granted != 0 {
				one.Granted, one.Released = new(c.Granted+ahead), new(c.Released+ahead)
				if c.Until != nil {
					one.Until = new(*c.Until + ahead)
				}
			}
			if c.Error != "" {
				one.Error = new(string(c.Error))
			}
			all = append(all, one)
		}
		for len(all) > mostAtOnce {
			s.say(answer{ID: q.ID, Cycles: all[:mostAtOnce]})
			all = all[mostAtOnce:]
		}
		s.say(answer{ID: q.ID, Cycles: all})
		return nil
	}
	_ = engine.DriveLocally(context.Background(), s.locker, a, nil, report) // only report could fail
	s.say(answer{ID: q.ID, Done: true})
}

// within converts the timeout of a request from nanoseconds to a time.Duration; nil means no timeout.
func within(ns *int64) *time.Duration {
	if ns == nil {
		return nil
	}
	return new(time.Duration(*ns))
}
