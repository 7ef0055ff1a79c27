package etcd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
)

var shared = drive.Share(Store())

func TestMain(m *testing.M) { shared.Main(m) }

// common returns the etcd that the tests of this package share. A test that reads all of its contents must not run in
// parallel.
func common(t *testing.T) *Server { return shared.Get(t).(*Server) }

func opened(t *testing.T, o store.Options) *Server { return drive.Open(t, Store(), o).(*Server) }

// TestUserEtcdIsUnchanged opens an etcd by its address, like a user's. Lockbench must describe it and measure its round
// trips, and must leave its contents unchanged.
func TestUserEtcdIsUnchanged(t *testing.T) {
	theirs := common(t)
	had := everything(t, theirs)
	server := opened(t, store.Options{Address: "etcd://" + theirs.to.endpoints[0]})
	connected, err := server.Connect(t.Context(), "lockbench:mine:run1:a", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	times, err := server.RoundTrips(t.Context(), "lockbench:mine:floors")
	if err != nil || times.PingP50 == nil || *times.PingP50 <= 0 || *times.PingP99 < *times.PingP50 ||
		times.ScriptP50 == nil || *times.ScriptP50 <= 0 {
		t.Errorf("%+v (%v)", times, err)
	}
	if d := server.Describe(); d.Source != "address" || d.Name != "etcd" || d.Version == "" || d.Network != "loopback" {
		t.Errorf("%+v", d)
	}
	if err := connected.Close(); err != nil {
		t.Error(err)
	}
	if has := everything(t, theirs); !slices.Equal(has, had) {
		t.Errorf("it had %q, and has %q", had, has)
	}
}

// everything returns all keys and leases of s.
func everything(t *testing.T, s *Server) []string {
	t.Helper()
	left, err := s.Leftovers(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return left.Keys
}

func TestLeftoversAreFoundAndRemoved(t *testing.T) {
	server := common(t)
	granted, err := server.client.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 * page / 100 {
		if _, err := server.client.Put(t.Context(), fmt.Sprintf("lockbench:{mine:1:%d}", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	leased := clientv3.WithLease(granted.ID)
	if _, err := server.client.Put(t.Context(), "lockbench:{other:1:0}", "", leased); err != nil {
		t.Fatal(err)
	}
	left, err := server.Leftovers(t.Context(), "{mine:1:", "")
	if err != nil || len(left.Keys) != 2*page/100+1 {
		t.Fatalf("left are %+v (%v)", left, err)
	}
	if err := server.Remove(t.Context(), left.Keys); err != nil {
		t.Fatal(err)
	}
	if left, err := server.Leftovers(t.Context(), "{mine:1:", ""); err != nil || len(left.Keys) > 0 {
		t.Errorf("left are %+v (%v)", left, err)
	}
}

func TestNoProgram(t *testing.T) {
	t.Setenv("LOCKBENCH_ETCD_SERVER", "no-such-etcd")
	_, err := Store().Open(t.Context(), "mine", store.Options{})
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "apt-get install etcd-server") {
		t.Errorf("%v", err)
	}
}
