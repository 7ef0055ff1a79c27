package stores_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	_ "github.com/lockbench/lockbench/internal/store/redis"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	_ "github.com/lockbench/lockbench/stores"
)

func lookup(t *testing.T, name string) store.Store {
	t.Helper()
	kind, err := store.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

// refused opens the named store at an address where this must fail, and returns the error. Open must return within
// drive.Bound.
func refused(t *testing.T, name, address string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	server, err := lookup(t, name).Open(ctx, store.NewRunID(), store.Options{Address: address})
	if err == nil {
		t.Errorf("%s took %s", name, address)
		_ = server.Close(ctx)
		return nil
	}
	if ctx.Err() != nil {
		t.Errorf("%s at %s waited for as long as it might: %v", name, address, err)
	}
	return err
}

// addressOf returns a URL with the scheme of the named store and the host and port in `at`.
func addressOf(t *testing.T, name, at string) string {
	t.Helper()
	return lookup(t, name).Schemes()[0] + "://" + at
}

// TestServerOfAnotherStore opens each store at the address of every other store's server. The error must contain this
// address and wrap ErrConfig or ErrUnreachable.
func TestServerOfAnotherStore(t *testing.T) {
	servers := map[string]string{}
	for _, name := range store.Names() {
		servers[name] = drive.Open(t, lookup(t, name), store.Options{Address: "process"}).Describe().Address
	}
	if len(servers) < 4 {
		t.Fatalf("there are only %v", servers)
	}
	for _, name := range store.Names() {
		for other, at := range servers {
			if other == name {
				continue
			}
			t.Run(name+" at "+other, func(t *testing.T) {
				t.Parallel()
				err := refused(t, name, addressOf(t, name, at))
				refused := errors.Is(err, store.ErrConfig) || errors.Is(err, store.ErrUnreachable)
				if !refused || !strings.Contains(err.Error(), at) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// TestSilence opens each store at a server that accepts connections but sends nothing. The error must wrap
// ErrUnreachable.
func TestSilence(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // the kernel accepts the connections
	for _, name := range store.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := refused(t, name, addressOf(t, name, listener.Addr().String())); !errors.Is(err,
				store.ErrUnreachable) {
				t.Errorf("%v", err)
			}
		})
	}
}
