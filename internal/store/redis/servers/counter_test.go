package servers

import (
	"errors"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// TestCounters accesses counters with current and stale tokens. With FenceAll, reads and writes with a stale token must
// return ErrStale. With FenceWrites, only writes must.
func TestCounters(t *testing.T) {
	const off, all, writes, read = workloads.FenceOff, workloads.FenceAll, workloads.FenceWrites, -1
	i, session := instance(clientsOf(t, open(t, Options{Address: "process"}), 4)), store.NewRunID()
	counter := "lockbench:{" + session + ":1:0}:counter"
	for _, c := range []struct {
		what  string
		fence workloads.Fence
		token int64
		write int64 // value to write, or read
		want  int64 // value that a read returns
		err   error
	}{
		{"a new counter", off, 0, read, 0, nil},
		{"a new counter, with a token", all, 5, read, 0, nil},
		{"write", all, 5, 1, 0, nil},
		{"read by the next", all, 7, read, 1, nil}, // raises the floor
		{"a late write", all, 5, 9, 0, store.ErrStale},
		{"a late read", all, 5, read, 0, store.ErrStale},
		{"a late read that is not checked", writes, 5, read, 1, nil},
		{"a late write that is", writes, 5, 9, 0, store.ErrStale},
		{"the next one's write", writes, 7, 2, 0, nil},
		{"the last", all, 8, read, 2, nil},
	} {
		var n int64
		var err error
		at := i.Counter(counter, c.fence, c.token)
		if c.write == read {
			n, err = at.Read(t.Context())
		} else {
			err = at.Write(t.Context(), c.write)
		}
		if n != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: %d, %v; want %d, %v", c.what, n, err, c.want, c.err)
		}
	}
	plain := i.Counter("lockbench:{"+session+":1:1}:counter", off, 0)
	for n := range int64(2) { // the first write creates it
		if err := plain.Write(t.Context(), n); err != nil {
			t.Error(err)
		}
		if got, err := plain.Read(t.Context()); got != n || err != nil {
			t.Errorf("a counter without tokens has %d, %v; want %d", got, err, n)
		}
	}
	// After concurrent accesses, the counter must have the value that was written with the largest token.
	crowded := "lockbench:{" + session + ":1:2}:counter"
	var clients sync.WaitGroup
	for token := int64(1); token <= 20; token++ {
		clients.Go(func() {
			c := i.Counter(crowded, all, token)
			_, err := c.Read(t.Context())
			if err == nil {
				err = c.Write(t.Context(), token)
			}
			if err != nil && !errors.Is(err, store.ErrStale) {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	if n, err := i.Counter(crowded, all, 20).Read(t.Context()); n != 20 || err != nil {
		t.Errorf("after a crowd it is %d, %v", n, err)
	}
}
