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

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
)

// Serve answers lockbench's questions as the driver of a lock in Go, until it is asked to close or in ends. open opens
// the lock on servers with these URLs.
func Serve(in io.Reader, out io.Writer, v strategies.Variant,
	open func(urls []string, clientName string, c strategies.Config) (strategies.Locker, error),
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
			return fmt.Errorf("what lockbench asks is not understood: %w", err)
		}
		if q.Do == "close" {
			return s.close()
		}
		s.answer(q)
	}
}

// served is the state of a driver.
type served struct {
	variant strategies.Variant
	open    func(urls []string, clientName string, c strategies.Config) (strategies.Locker, error)
	locker  strategies.Locker

	mu     sync.Mutex
	out    *json.Encoder
	leases map[int64]strategies.Lease
	calls  map[int64]context.CancelFunc // that go on, by their questions
	stop   context.CancelFunc           // ends the run
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
	_ = s.out.Encode(a) // if nobody listens any more, in ends
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
			Keys: info.Keys, Keeps: info.Persistent, Extends: true,
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
		s.locker, err = s.open(q.Redis, q.ClientName, strategies.Config{
			Prefix: q.Prefix, TTL: time.Duration(q.TTL) * time.Millisecond, Callers: q.Callers,
		})
	case "run":
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		go s.run(ctx, q) // ends with its clients
		return
	case "stop":
		s.stop()
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

// acquire takes the lock within the timeout, if there is one.
func (s *served) acquire(ctx context.Context, q question) answer {
	lease, err := take(ctx, s.locker, *q.Key, q.Timeout)
	if err != nil {
		return answer{ID: q.ID, Error: why(ctx, err)}
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

// use releases or extends a lease.
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
		return answer{ID: q.ID, Error: why(ctx, err)}
	}
	return answer{ID: q.ID, Until: untilOf(lease)}
}

// take acquires, or tries to.
func take(ctx context.Context, locker strategies.Locker, key string, timeout *int64) (strategies.Lease, error) {
	switch {
	case timeout == nil:
		return locker.Acquire(ctx, key)
	case *timeout == 0:
		trier, ok := strategies.As[strategies.Trier](locker)
		if !ok {
			return nil, errors.New("it has no try-lock")
		}
		return trier.TryAcquire(ctx, key)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(*timeout))
	defer cancel()
	return locker.Acquire(ctx, key)
}

// why returns an error in the protocol's words.
func why(ctx context.Context, err error) string {
	switch {
	case ctx.Err() != nil:
		return "stopped"
	case errors.Is(err, strategies.ErrHeld), errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, strategies.ErrNotHeld):
		return "not held"
	}
	return err.Error()
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

const (
	// reporting is the time between two reports.
	reporting = 50 * time.Millisecond
	// mostAtOnce cycles are in one line.
	mostAtOnce = 2000
	// retryPause is the pause after an error.
	retryPause = 50 * time.Millisecond
)

// run lets the clients run until the end, and reports.
func (s *served) run(ctx context.Context, q question) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.Stop-monotonic()))
	defer cancel()
	var mu sync.Mutex
	var made []cycle
	sleepers := pause.Sleepers{Exact: true}
	defer sleepers.Close()
	var clients sync.WaitGroup
	for _, client := range q.Clients {
		clients.Go(func() {
			sleepers.Sleep(ctx.Done(), time.Duration(q.Start-monotonic()))
			for at := client[1]; ctx.Err() == nil; at++ {
				step := q.Steps[at%len(q.Steps)]
				c := s.cycle(ctx, q, step, &sleepers)
				c.Client = client[0]
				mu.Lock()
				made = append(made, c)
				mu.Unlock()
				sleepers.Sleep(ctx.Done(), time.Duration(step[2]))
			}
		})
	}
	stopped := make(chan struct{})
	go func() {
		clients.Wait()
		close(stopped)
	}()
	for done := false; !done; {
		select {
		case <-time.After(reporting):
		case <-stopped:
			done = true
		}
		mu.Lock()
		all := made
		made = nil
		mu.Unlock()
		for len(all) > mostAtOnce {
			s.say(answer{ID: q.ID, Cycles: all[:mostAtOnce]})
			all = all[mostAtOnce:]
		}
		s.say(answer{ID: q.ID, Cycles: all, Done: done})
	}
}

// cycle acquires, holds and releases once.
func (s *served) cycle(ctx context.Context, q question, step [3]int64, sleepers *pause.Sleepers) cycle {
	c := cycle{Key: int(step[0]), Asked: monotonic()}
	lease, err := take(ctx, s.locker, q.Keys[step[0]], q.Timeout)
	at := monotonic()
	if err != nil {
		c.Done, c.Error = at, new(why(ctx, err))
		if *c.Error == "timeout" && q.Timeout == nil { // the lock knew of the end by its own clock
			c.Error = new("stopped")
		}
		if *c.Error != "timeout" {
			sleepers.Sleep(ctx.Done(), retryPause)
		}
		return c
	}
	c.Token = tokenOf(lease)
	if hold := at + step[1]; step[1] > 0 {
		sleepers.Sleep(ctx.Done(), time.Duration(hold-monotonic()))
	}
	c.Granted, c.Released = new(at), new(monotonic())
	err = lease.Release(context.WithoutCancel(ctx))
	c.Done = monotonic()
	if err != nil {
		c.Error = new(why(context.Background(), err))
	}
	return c
}
