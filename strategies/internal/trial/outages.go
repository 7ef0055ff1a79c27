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
	// limit is the time after which the context of a call during an outage ends.
	limit = 300 * time.Millisecond
	// late is the longest allowed duration of a call during an outage. It is less than go-redis's default ReadTimeout, so
	// a call that ends within this time has ended because of its context.
	late = 2 * time.Second
	// soon is the time after an outage within which each lock must be free. It is less than the TTL, so a lock that is
	// free by then was released and did not expire.
	soon = 10 * time.Second
)

// outages maps the name of each kind of outage to a function that makes Redis refuse commands or stop replying until
// end is called.
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

// Outages tests each variant while Redis refuses commands or does not reply. The client has go-redis's defaults, so it
// retries commands and ignores contexts. Calls must still end with their contexts. After the outage, locks that were
// released or whose acquire failed must soon be free.
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
			t.Errorf("Acquire got the lock during an outage, and its release returned %v", lease.Release(t.Context()))
		}
		return err
	})
	if e, is := strategies.As[strategies.Extender](extended); is {
		during(t, "Extend", func(ctx context.Context) error { return e.Extend(ctx, time.Minute) })
	}
	during(t, "Release after the end of its context", func(ctx context.Context) error {
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

// parkOne starts a waiter and returns once it is waiting. The returned function waits until the context passed to it
// ends, then cancels the waiter's context and returns the waiter's error.
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

// during makes a call during an outage, with a context that ends after limit. The test fails unless the call returns
// within late, with an error that describes the outage rather than the lock.
func during(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	if took := time.Since(began); took > late {
		t.Errorf("%s with a time limit of %v returned after %v", what, limit, took)
	}
	if err == nil || errors.Is(err, strategies.ErrNotHeld) || errors.Is(err, strategies.ErrHeld) {
		t.Errorf("%s during an outage returned %v", what, err)
	}
}
