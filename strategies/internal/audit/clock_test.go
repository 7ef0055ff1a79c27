package audit

import (
	"context"
	_ "embed" // the library's source
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/redistest"
)

//go:embed testdata/clock.c
var clockSource []byte

// settable starts a Redis whose clock can be set, by how far it is ahead of the machine's.
func settable(t *testing.T) (server *redistest.Server, set func(ahead time.Duration)) {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("to set Redis's clock takes a C compiler: ", err)
	}
	dir := t.TempDir()
	source, library, file := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so"), filepath.Join(dir, "ahead")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(compiler, "-shared", "-fPIC", "-o", library, source, "-ldl").CombinedOutput(); err != nil {
		t.Skipf("the library that sets Redis's clock cannot be made: %v: %s", err, output)
	}
	t.Setenv("LD_PRELOAD", library)
	t.Setenv("CLOCK_AHEAD", file)
	server = redistest.Start(t)
	set = func(ahead time.Duration) {
		t.Helper()
		if err := os.WriteFile(file+"~", []byte(strconv.Itoa(int(ahead.Seconds()))), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
		now, err := server.Client(t).Time(t.Context()).Result()
		if off := time.Until(now) - ahead; err != nil || off.Abs() > 10*time.Second {
			t.Skipf("Redis's clock cannot be set here: it is off by %v, %v", off, err)
		}
	}
	return server, set
}

// Tokens are positive and grow beyond 2038, when seconds leave 31 bits.
func TestTokensBeyond2038(t *testing.T) {
	for _, name := range []string{"handoff", "cohort"} {
		t.Run(name, func(t *testing.T) {
			server, set := settable(t)
			locker := open(t, name, server.Addr, nil, time.Minute)
			var last int64
			year := 365 * 24 * time.Hour
			for _, ahead := range []time.Duration{0, 11 * year, 13 * year, 50 * year} {
				set(ahead)
				lease := acquire(t, locker)
				if token(lease) <= last {
					t.Errorf("in %d years token %d came after %d", ahead/year, token(lease), last)
				}
				last = token(lease)
				_ = release(t, lease)
			}
		})
	}
}

// When Redis's clock has been set forward, a grant that comes late is not believed to be a
// lease that lasts.
func TestLateGrantAfterTheClockWasSet(t *testing.T) {
	for _, name := range []string{"handoff", "cohort"} {
		server, set := settable(t)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const ttl = time.Second
			p := new(path)
			holder := open(t, name, server.Addr, nil, time.Hour)
			waiter := open(t, name, server.Addr, p.dial, ttl)
			other := open(t, name, server.Addr, nil, time.Hour)
			b := &book{t: t}
			lease := acquire(t, holder)
			b.enter("the holder", lease)
			ctx, cancel := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() {
				lease, err := waiter.Acquire(ctx, "key")
				if err == nil {
					b.enter("who was told late", lease)
					b.leave(lease)
					_ = release(t, lease)
				}
				result <- err
			}()
			time.Sleep(200 * time.Millisecond)
			set(30 * time.Second)
			time.Sleep(1500 * time.Millisecond) // it beats again
			p.stall(true)
			b.leave(lease)
			if err := release(t, lease); err != nil {
				t.Error(err)
			}
			theirs := free(t, other) // once the waiter's lease has run out
			b.enter("the other", theirs)
			p.stall(false)
			time.Sleep(300 * time.Millisecond)
			cancel()
			if err := <-result; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			b.leave(theirs)
			_ = release(t, theirs)
		})
	}
}
