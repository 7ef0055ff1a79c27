package trial

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

const (
	// limit is the timeout of a call's context during an outage.
	limit = 300 * time.Millisecond
	// late is the longest duration of such a call, less than go-redis's ReadTimeout.
	late = 2 * time.Second
	// soon is the longest time after an outage until a lock is free, less than the TTL.
	soon = 10 * time.Second
)

// outages are the ways to make Redis refuse commands or stop replying until end is called.
var outages = map[string]func(t *testing.T, server *redistest.Server) (end func()){
	"NOREPLICAS": func(t *testing.T, server *redistest.Server) func() {
		outside := server.Client(t)
		set := func(replicas string) {
			if err := outside.ConfigSet(t.Context(), "min-replicas-to-write", replicas).Err(); err != nil {
				t.Error(err)
			}
		}
		set("1")
		return func() { set("0") }
	},
	"BUSY": func(t *testing.T, server *redistest.Server) func() {
		outside, script := server.Client(t), server.Client(t)
		over := make(chan struct{})
		go func() {
			defer close(over)
			_ = script.Eval(context.Background(), "while true do end", nil).Err() // it is killed
		}()
		poll.Until(t, "Redis is busy", func() bool {
			err := outside.Ping(t.Context()).Err()
			return err != nil && strings.HasPrefix(err.Error(), "BUSY")
		})
		return func() {
			if err := outside.ScriptKill(t.Context()).Err(); err != nil {
				t.Error(err)
			}
			<-over
		}
	},
	"stopped": func(_ *testing.T, server *redistest.Server) func() {
		server.Pause()
		return server.Resume
	},
}

// Outages tests each variant while Redis refuses commands or does not reply, with a client with go-redis's defaults,
// which retries and ignores contexts. Calls must end with their contexts. Locks that were released, or whose acquire
// failed, must be free soon after the outage.
func Outages(t *testing.T, variants ...string) {
	for _, variant := range variants {
		for name, begin := range outages {
			t.Run(variant+" "+name, func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t, "--lua-time-limit", "20")
				outage(t, server, variant, func() func() { return begin(t, server) })
			})
		}
	}
}

func outage(t *testing.T, server *redistest.Server, variant string, begin func() (end func())) {
	service := redistest.Dial(t, server.URL())
	p := StartOn(t, []goredis.Node{{Client: service}}, variant, time.Minute)
	next := Start(t, server, variant, time.Minute)
	released, extended, waited := p.Acquire(t, "released"), p.Acquire(t, "extended"), p.Acquire(t, "waited")
	waiter := parkOne(t, p, "waited")
	end := begin()
	ended := false
	defer func() {
		if !ended {
			end()
		}
	}()

	during(t, "Acquire of a waiter", waiter)
	during(t, "Release", released.Release)
	during(t, "Release after a waiter", waited.Release)
	during(t, "Acquire", func(ctx context.Context) error {
		lease, err := p.Locker.Acquire(ctx, "acquired")
		if err == nil {
			t.Errorf("acquired during an outage: %v", lease.Release(t.Context()))
		}
		return err
	})
	if e, is := strategies.As[strategies.Extender](extended); is {
		during(t, "Extend", func(ctx context.Context) error { return e.Extend(ctx, time.Minute) })
	}
	during(t, "Release with an ended context", func(ctx context.Context) error {
		<-ctx.Done()
		return extended.Release(ctx)
	})

	end()
	ended = true
	for _, key := range []string{"released", "extended", "waited", "acquired"} {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		lease, err := next.Ask(ctx, key)
		cancel()
		if err != nil {
			t.Errorf("after the outage the lock %q is not free: %v", key, err)
			continue
		}
		Release(t, lease)
	}
}

// parkOne starts a waiter and returns once it is waiting. end waits until its own context ends, cancels the waiter's
// context and returns the waiter's error.
func parkOne(t *testing.T, p Process, key string) (end func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	before := p.Counts().Attempts
	over := make(chan error, 1)
	go func() {
		_, err := p.Locker.Acquire(ctx, key)
		over <- err
	}()
	t.Cleanup(func() { cancel() })
	poll.Until(t, "the waiter sends its first request", func() bool { return p.Counts().Attempts > before })
	time.Sleep(limit) // gives the waiter time to park
	return func(ended context.Context) error {
		<-ended.Done()
		cancel()
		return <-over
	}
}

// during makes a call during an outage, with a context that ends soon. The call must return an error in time.
func during(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	if took := time.Since(began); took > late {
		t.Errorf("%s with a context of %v returned after %v", what, limit, took)
	}
	if err == nil || errors.Is(err, strategies.ErrNotHeld) || errors.Is(err, strategies.ErrHeld) {
		t.Errorf("%s during an outage returned %v", what, err)
	}
}
