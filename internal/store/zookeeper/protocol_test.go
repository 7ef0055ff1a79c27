package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
	lock "github.com/lockbench/lockbench/strategies/zookeeper"
	"github.com/lockbench/lockbench/workloads"
)

// What goes through a detour is understood: an acquisition is a create and two reads, a
// release a delete.
func TestCommands(t *testing.T) {
	s := common(t)
	var mu sync.Mutex
	var seen []string
	i, err := s.Connect(t.Context(), "lockbench:commands:1", 1, func(dial store.Dialer) store.Dialer {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return intercept.Conn(conn, intercept.Hooks{Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
				mu.Lock()
				seen = append(seen, s.Commands(b)...)
				mu.Unlock()
				return write(b)
			}}), nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	locker, err := lock.Open(gozk.Config{Nodes: []gozk.Node{i.Nodes()[0].(gozk.Node)}, TTL: 10 * time.Second}, lock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	for range 2 { // the first makes the lock's own node
		mu.Lock()
		seen = nil
		mu.Unlock()
		lease, err := locker.Acquire(t.Context(), "commands")
		if err == nil {
			err = lease.Release(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 4 {
		slices.Sort(seen[1:3])
	}
	if want := []string{"create", "exists", "getChildren2", "delete"}; !slices.Equal(seen, want) {
		t.Errorf("it sent %q, want %q", seen, want)
	}
	for _, piece := range [][]byte{nil, {0, 0}, {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 99}, []byte("GET / HTTP/1.1\r\n\r\n")} {
		if names := s.Commands(piece); len(names) > 0 {
			t.Errorf("%q has %q", piece, names)
		}
	}
	if err := s.Remove(t.Context(), []string{"commands"}); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	s := new(Server)
	for err, want := range map[error]string{
		fmt.Errorf("create: %w", zk.ErrNoAuth): "NOAUTH", zk.ErrAuthFailed: "AUTHFAILED", zk.ErrNoNode: "", errors.New("other"): "", gozk.ErrIndeterminate: "",
	} {
		if got := s.Refused(err); got != want || s.Unauthorised(got) != (want != "") {
			t.Errorf("of %v it is %q", err, got)
		}
	}
}

// Connections are told by name, to other processes too, and those left open are told.
func TestConnections(t *testing.T) {
	s := common(t)
	const prefix = "lockbench:names:run1:"
	one, err := s.Connect(t.Context(), prefix+"a/b%", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := open(t, users(s))
	two, err := other.Connect(t.Context(), prefix+"two", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if names, err := s.Connected(t.Context(), prefix); err != nil || !slices.Equal(names, []string{prefix + "a/b%", prefix + "two"}) {
		t.Errorf("connected are %q, %v", names, err)
	}
	if left, err := s.Leftovers(t.Context(), "no such mark", prefix+"a/b%"); err != nil || len(left.Connections) != 1 || len(left.Keys) > 0 {
		t.Errorf("left are %+v, %v", left, err)
	}
	for _, i := range []store.Instance{one, two} {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
	if names, err := s.Connected(t.Context(), prefix); err != nil || len(names) > 0 {
		t.Errorf("connected are %q, %v", names, err)
	}
	if left, err := s.Leftovers(t.Context(), "no such mark", prefix+"a/b%"); err != nil || len(left.Connections) > 0 {
		t.Errorf("left are %+v, %v", left, err)
	}
}

// leaky is a lock that forgets a place in the queue, and does not close its session.
type leaky struct{ strategies.Locker }

func (l leaky) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lease, err := l.Locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	waiter, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	go func() { _, _ = l.Locker.Acquire(ctx, key+":forgotten") }()
	<-waiter.Done()
	return lease, nil
}

func (leaky) Close() error { return nil }

// A lock that leaves something is found out.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	s := common(t)
	var inner []strategies.Locker
	info := variant(t).Info()
	info.Keys = append(info.Keys, "{key}:forgotten")
	v := strategies.Unlisted(info, func(c gozk.Config) (leaky, error) {
		l, err := lock.Open(c, lock.Options{})
		inner = append(inner, l)
		return leaky{l}, err
	})
	w := drive.Workload(20)
	w.Clients, w.Instances = 1, 1
	run, err := engine.Job{Strategy: v, Workload: w, Target: s, Session: "deafbeef", Number: 1}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said := strings.Join(run.Safety.Leftovers, "\n")
	for _, want := range []string{"key lockbench:{deafbeef:1:0}:forgotten/_c_", "connection "} {
		if !strings.Contains(said, want) {
			t.Errorf("left are %q, without %q", said, want)
		}
	}
	for _, l := range inner {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	nodes, _, err := keys(t.Context(), s.watching, func(key string) bool { return strings.Contains(key, "deafbeef") })
	if err != nil || len(nodes) > 0 {
		t.Errorf("after the clean-up there are %q, %v", nodes, err)
	}
}

func TestCounter(t *testing.T) {
	s := common(t)
	i, err := s.Connect(t.Context(), "lockbench:counter:1", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	ctx := t.Context()
	name := "lockbench:{counter:1:0}:counter"
	defer func() {
		_ = s.Remove(context.Background(), []string{name, name + ":floor", name + "x", name + "x:floor"})
	}()
	of := func(fence workloads.Fence, token int64) store.Counter { return i.Counter(name, fence, token) }
	expect := func(what string, n, want int64, err, wanted error) {
		t.Helper()
		if n != want || !errors.Is(err, wanted) || wanted == nil && err != nil {
			t.Errorf("%s: %d, %v; want %d, %v", what, n, err, want, wanted)
		}
	}
	n, err := of(workloads.FenceOff, 0).Read(ctx)
	expect("a new counter", n, 0, err, nil)
	n, err = of(workloads.FenceAll, 5).Read(ctx)
	expect("a new counter, with a token", n, 0, err, nil)
	expect("write", 0, 0, of(workloads.FenceAll, 5).Write(ctx, 1), nil)
	n, err = of(workloads.FenceAll, 7).Read(ctx) // raises the floor
	expect("read by the next", n, 1, err, nil)
	expect("a late write", 0, 0, of(workloads.FenceAll, 5).Write(ctx, 9), store.ErrStale)
	n, err = of(workloads.FenceAll, 5).Read(ctx)
	expect("a late read", n, 0, err, store.ErrStale)
	n, err = of(workloads.FenceWrites, 5).Read(ctx)
	expect("a late read that is not looked at", n, 1, err, nil)
	expect("a late write that is", 0, 0, of(workloads.FenceWrites, 5).Write(ctx, 9), store.ErrStale)
	expect("the next one's write", 0, 0, of(workloads.FenceWrites, 7).Write(ctx, 2), nil)
	expect("a write that everybody may", 0, 0, of(workloads.FenceOff, 0).Write(ctx, 3), nil)
	n, err = of(workloads.FenceAll, 8).Read(ctx)
	expect("the last", n, 3, err, nil)

	// However many come at a time, what was read with the largest token stays.
	var all sync.WaitGroup
	for token := int64(1); token <= 20; token++ {
		all.Go(func() {
			c := i.Counter(name+"x", workloads.FenceAll, token)
			if _, err := c.Read(ctx); err == nil {
				err = c.Write(ctx, token)
				if err != nil && !errors.Is(err, store.ErrStale) {
					t.Error(err)
				}
			} else if !errors.Is(err, store.ErrStale) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	n, err = i.Counter(name+"x", workloads.FenceAll, 20).Read(ctx)
	expect("after a crowd", n, 20, err, nil)
}
