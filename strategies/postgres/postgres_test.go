package postgres_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	pgstore "github.com/lockbench/lockbench/internal/store/postgres"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gopgx"
	"github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/workloads"
)

const long = 5 * time.Minute

// The holder's session is the lease: when it ends, the next waiter has the lock, and the
// holder is told.
func TestTheEndOfASessionIsTheEndOfItsLease(t *testing.T) {
	for name, options := range modes() {
		t.Run(name, func(t *testing.T) {
			at, called := node(t, server)
			dying, living, eye := openAt(t, at, long, options), open(t, server, long, options), look(t, server)
			lease := acquire(t, dying, "key")
			next := make(chan strategies.Lease, 1)
			ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
			defer cancel()
			go func() {
				lease, err := living.Acquire(ctx, "key")
				if err != nil {
					t.Error(err)
				}
				next <- lease
			}()
			poll.Until(t, "somebody waits", func() bool { return waiting(t) == 1 })
			lost := lease.(strategies.Watched).Lost()
			select {
			case <-lost:
				t.Error("it is lost while it is held")
			case <-next:
				t.Error("two hold it")
			case <-time.After(20 * time.Millisecond):
			}
			if number(t, eye, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = $1", called) == 0 {
				t.Fatal("there was nothing to end")
			}
			granted := <-next
			if granted == nil {
				t.Fatal("nobody got the lock")
			}
			select {
			case <-lost:
			case <-time.After(drive.Bound):
				t.Error("the holder is not told")
			}
			if err := lease.Release(context.Background()); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("its release returned %v", err)
			}
			if trier := openTry(t, dying); !errors.Is(trier, strategies.ErrHeld) {
				t.Errorf("a late release has freed the lock: %v", trier)
			}
			release(t, granted)
			release(t, acquire(t, dying, "key")) // its process goes on
		})
	}
}

func openTry(t *testing.T, locker *postgres.Locker) error {
	t.Helper()
	lease, err := locker.TryAcquire(t.Context(), "key")
	if err == nil {
		release(t, lease)
	}
	return err
}

// waiting is how many wait for a lock at the server.
func waiting(t *testing.T) int64 {
	t.Helper()
	return number(t, look(t, server), "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
}

// Whoever gives up while the lock is being granted to him keeps neither the lock nor a
// place in the queue.
func TestCancelRacesWithTheGrant(t *testing.T) {
	for name, options := range modes() {
		t.Run(name, func(t *testing.T) {
			a, b, eye := open(t, server, long, options), open(t, server, long, options), look(t, server)
			granted, given := 0, 0
			rounds := 40
			if extent.Thorough() {
				rounds = 200
			}
			delay := time.Millisecond // sooner after a grant and later after none: it stays a race
			for range rounds {
				before := granted
				lease := acquire(t, a, "key")
				ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
				var all sync.WaitGroup
				all.Go(func() {
					held, err := b.Acquire(ctx, "key")
					switch {
					case err == nil:
						granted++
						release(t, held)
					case errors.Is(err, context.Canceled):
						given++
					default:
						t.Error(err)
					}
				})
				time.Sleep(time.Duration(rand.Int64N(int64(3 * time.Millisecond))))
				all.Go(func() {
					time.Sleep(delay)
					cancel()
				})
				release(t, lease)
				all.Wait()
				if delay = delay * 5 / 4; granted > before {
					delay /= 2
				}
				if n := number(t, eye, "SELECT count(*) FROM pg_locks WHERE locktype IN ('advisory', 'tuple', 'transactionid') AND pid <> pg_backend_pid()"); n > 0 {
					t.Fatalf("%d locks are left", n)
				}
			}
			if given == 0 || granted == 0 {
				t.Errorf("there was no race: %d were granted the lock, %d gave up", granted, given)
			}
		})
	}
}

// With expire=true a holder that is silent loses the lock after the TTL, and not before his
// lease says so; without it he keeps it.
func TestASilentHolder(t *testing.T) {
	const ttl = 400 * time.Millisecond
	for name, options := range modes() {
		t.Run(name, func(t *testing.T) {
			silent, other := open(t, server, ttl, options), open(t, server, ttl, options)
			lease := acquire(t, silent, "key")
			wait := drive.Bound
			if !options.Expire {
				wait = 3 * ttl
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			next, err := other.Acquire(ctx, "key")
			if !options.Expire {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("another got it: %v", err)
				}
				release(t, lease)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if until := lease.(strategies.Timed).ValidUntil(); time.Now().Before(until) {
				t.Errorf("another has the lock %v before the lease's end", time.Until(until))
			}
			if err := lease.Release(context.Background()); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("the silent holder's release returned %v", err)
			}
			// Whoever is heard of keeps it.
			for range 6 {
				time.Sleep(ttl / 2)
				if err := next.(strategies.Extender).Extend(t.Context(), ttl); err != nil {
					t.Fatal(err)
				}
			}
			release(t, next)
		})
	}
}

// An extension that never began takes nothing from the lease.
func TestAnExtensionWithAnEndedContext(t *testing.T) {
	for name, options := range modes() {
		if !options.Expire {
			continue
		}
		t.Run(name, func(t *testing.T) {
			locker := open(t, server, long, options)
			lease := acquire(t, locker, "key")
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := lease.(strategies.Extender).Extend(ended, long); !errors.Is(err, context.Canceled) {
				t.Errorf("it returned %v", err)
			}
			release(t, lease) // nothing was sent
		})
	}
}

// A release that cannot be carried out ends the connection, and frees the lock by that.
func TestAReleaseWithAnEndedContext(t *testing.T) {
	for name, options := range modes() {
		t.Run(name, func(t *testing.T) {
			a, b := open(t, server, long, options), open(t, server, long, options)
			lease := acquire(t, a, "key")
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			if err := lease.Release(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("it returned %v", err)
			}
			if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("the second returned %v", err)
			}
			release(t, acquire(t, b, "key"))
		})
	}
}

// Tokens grow over a crash of the server, which then finds its data again; and the same
// Lockers work on, on connections that they did not know to be dead.
func TestACrashOfTheServer(t *testing.T) {
	crashing, err := (pgstore.Store{}).Open(t.Context(), store.NewRunID(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := crashing.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	faults := crashing.Faults(nil)
	defer faults.Close()
	all := map[string]*postgres.Locker{}
	tokens := map[string]int64{}
	for name, options := range modes() {
		all[name] = open(t, crashing, long, options)
	}
	for round := range 2 {
		var leases []strategies.Lease
		for name, locker := range all {
			for range 1 + round*20 { // PostgreSQL writes every 32nd value
				release(t, acquire(t, locker, name))
			}
			spare := acquire(t, locker, name+" too")
			lease := acquire(t, locker, name)
			release(t, spare) // its connection is kept, and dies unseen
			leases = append(leases, lease)
			if fenced, ok := lease.(strategies.Fenced); ok {
				if token := fenced.FencingToken(); token <= tokens[name] {
					t.Errorf("%s: token %d came after %d", name, token, tokens[name])
				}
				tokens[name] = fenced.FencingToken()
			}
		}
		action, err := faults.Prepare(t.Context(), workloads.Fault{Name: workloads.Kill, Data: workloads.DataKeep}, store.RunMarks{})
		if err == nil {
			err = action.Hit(t.Context())
		}
		if err == nil {
			err = action.End(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, lease := range leases {
			if err := lease.Release(t.Context()); err == nil {
				t.Error("a lease outlived the server")
			}
		}
	}
	if len(tokens) == 0 {
		t.Error("no kind has tokens")
	}
}

// The number of a key is what the documentation says, in PostgreSQL's words too.
func TestNumber(t *testing.T) {
	at, _ := node(t, server)
	locker, err := postgres.Open(gopgx.Config{Nodes: []gopgx.Node{at}, TTL: long}, postgres.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	sum := sha256.Sum256([]byte("order:17"))
	want := int64(binary.BigEndian.Uint64(sum[:]))
	eye := look(t, server)
	if got := number(t, eye, "SELECT ('x' || left(encode(sha256(convert_to('order:17', 'UTF8')), 'hex'), 16))::bit(64)::bigint"); got != want {
		t.Errorf("PostgreSQL says %d, and Go %d", got, want)
	}
	lease := acquire(t, locker, "order:17")
	if number(t, eye, "SELECT pg_try_advisory_lock($1)::int", want) != 0 {
		t.Error("that number is not locked")
	}
	release(t, lease)
	if number(t, eye, "SELECT pg_try_advisory_lock($1)::int", want) != 1 {
		t.Error("that number is locked still")
	}
}

// An acquire and a release are a round trip each, and nobody polls.
func TestRoundTrips(t *testing.T) {
	eye := look(t, server)
	for name, options := range modes() {
		t.Run(name, func(t *testing.T) {
			locker := open(t, server, long, options)
			release(t, acquire(t, locker, "key")) // its connection is open, its statements are known
			const times = 20
			before := requests(t)
			for range times {
				release(t, acquire(t, locker, "key"))
			}
			if got := requests(t) - before - 1; got != 2*times { // 1 is the reading itself
				t.Errorf("%d acquisitions took %d round trips", times, got)
			}
			lease := acquire(t, locker, "key")
			at, called := node(t, server)
			other := openAt(t, at, long, options)
			release(t, acquire(t, other, "another"))
			sessions := func() int64 {
				return number(t, eye, "SELECT coalesce(sum(pid), 0) FROM pg_stat_activity WHERE application_name = $1", called)
			}
			known := sessions()
			before = requests(t)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if _, err := other.Acquire(ctx, "key"); err == nil {
				t.Error("two hold it")
			}
			if got := requests(t) - before - 1; got > 6 { // ask, cancel, forget
				t.Errorf("a wait took %d round trips", got)
			}
			if sessions() != known {
				t.Error("a wait that was given up has cost its connection")
			}
			release(t, lease)
		})
	}
}

func requests(t *testing.T) int64 {
	t.Helper()
	r, err := server.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r.RoundTrips
}

// A role that may do nothing but connect has the advisory lock; for the others it is told
// what is missing.
func TestARoleWithoutRights(t *testing.T) {
	eye := look(t, server)
	for _, sql := range []string{"CREATE ROLE modest LOGIN PASSWORD 'x'", "REVOKE CREATE ON SCHEMA public FROM public"} {
		if _, err := eye.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	at, _ := node(t, server)
	at.Config = at.Config.Copy()
	at.Config.User, at.Config.Password, at.Schema = "modest", "x", ""
	for name, options := range modes() {
		locker := openAt(t, at, long, options)
		err := locker.Prepare(t.Context(), nil)
		if options.Mode == postgres.Row || options.Fence {
			if err == nil || !strings.Contains(err.Error(), "permission denied") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		release(t, acquire(t, locker, "key"))
	}
}

func TestOptions(t *testing.T) {
	for _, mode := range []string{"xact", "row"} {
		if _, err := postgres.Strategy().Variant(map[string]string{"mode": mode, "fence": "true"}); err == nil {
			t.Errorf("a token is promised with mode=%s", mode)
		}
	}
	if _, err := postgres.Strategy().Variant(map[string]string{"mode": "table"}); err == nil || !strings.Contains(err.Error(), "mode") {
		t.Errorf("mode=table: %v", err)
	}
	variant, err := postgres.Strategy().Variant(map[string]string{"fence": "true", "expire": "true"})
	if err != nil {
		t.Fatal(err)
	}
	if claims := variant.Info().Claims.String(); claims != "exclusion, recovery, FIFO, fencing" {
		t.Errorf("it claims %s", claims)
	}
	if claims := postgres.Strategy().Info.Claims.String(); claims != "exclusion, FIFO" {
		t.Errorf("by default it claims %s", claims)
	}
}

// Whoever imports the lock compiles no other store's client, and nothing that measures.
func TestImports(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/lockbench/lockbench/"
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		known := strings.HasPrefix(dep, "github.com/jackc/") || strings.HasPrefix(dep, "golang.org/x/text") || strings.HasPrefix(dep, module+"strategies") ||
			!strings.Contains(strings.Split(dep, "/")[0], ".")
		if !known || strings.Contains(dep, "goredis") || dep == "testing" {
			t.Errorf("it compiles %s", dep)
		}
	}
}
