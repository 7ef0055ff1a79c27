package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/store"
)

// Shared is a server that the tests of a package share as far as they can: it takes a second or two to start.
type Shared struct{ open func() (store.Server, error) }

// Share returns a server of a store, which starts when it is first used.
func Share(kind store.Store) Shared {
	return Shared{sync.OnceValues(func() (store.Server, error) {
		return kind.Open(context.Background(), store.NewRunID(), store.Options{})
	})}
}

// Main is a TestMain: it runs the tests, closes the server, and looks for goroutines that are left.
func (s Shared) Main(m *testing.M) {
	ManyAtATime()
	code := m.Run()
	server, err := s.open()
	if err == nil {
		err = server.Close(context.Background())
	}
	if err = errors.Join(err, goleak.Find()); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Get returns the server.
func (s Shared) Get(t testing.TB) store.Server {
	t.Helper()
	server, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// Open opens a store, and closes it with a context that has ended when the test ends.
func Open(t testing.TB, kind store.Store, o store.Options) store.Server {
	t.Helper()
	server, err := kind.Open(t.Context(), store.NewRunID(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := server.Close(ended); err != nil {
			t.Error(err)
		}
	})
	return server
}
