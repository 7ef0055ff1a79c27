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
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/results"
	lock "github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/workloads"
)

var shared = drive.Share(Store{})

func TestMain(m *testing.M) { shared.Main(m) }

// common is the shared etcd. What looks at all that is there does not run in parallel.
func common(t *testing.T) *Server { return shared.Get(t).(*Server) }

// opened opens the store, and closes it when the test ends.
func opened(t *testing.T, o store.Options) *Server { return drive.Open(t, Store{}, o).(*Server) }

// run drives the lock until it was had fifty times, or so often after a fault. A Mutex hands
// over in steps of 100 ms, see the lock's own tests, so that it has the lock less often.
func run(t *testing.T, server *Server, options map[string]string, change func(*workloads.Spec)) *results.Run {
	t.Helper()
	v, err := lock.Strategy().Variant(options)
	if err != nil {
		t.Fatal(err)
	}
	w := drive.Workload(50)
	if options["watch"] != "next" {
		w.Iterations = 10
	}
	if change != nil {
		change(&w)
	}
	return drive.Run(t, server, server.runID, v, w)
}

var next = map[string]string{"watch": "next"}

func TestARunOnEtcdOfOurOwn(t *testing.T) { runs(t, common(t)) }

// runs are of all kinds of the lock, and of what is counted meanwhile.
func runs(t *testing.T, server *Server) {
	kinds := []map[string]string{next}
	if extent.Thorough() {
		kinds = append(kinds, nil)
	}
	for _, options := range kinds {
		got := run(t, server, options, func(w *workloads.Spec) {
			w.Work, w.Fence = workloads.WorkCounter, workloads.FenceAll
		})
		whole := got.Server.Whole
		if whole == nil || whole.CPU == nil || *whole.CPU <= 0 || *whole.ClientBytesOut <= 0 ||
			*whole.ClientBytesIn <= 0 || *whole.RoundTrips <= 0 {
			t.Fatalf("what etcd did is not known: %+v", whole)
		}
		if whole.Commands["Txn"] < 4*whole.Acquisitions { // two of the lock, two of the counter
			t.Errorf("%d acquisitions and %v", whole.Acquisitions, whole.Commands)
		}
		if lost := got.Safety.LostUpdates; lost == nil || *lost != 0 {
			t.Errorf("lost updates: %v", lost)
		}
	}
}

// content is all that an etcd has, with its leases.
func content(t *testing.T, client *clientv3.Client) string {
	t.Helper()
	all, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		t.Fatal(err)
	}
	leases, err := client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(all.Kvs, leases.Leases)
}

// A user's etcd has the same keys and leases after a run as before, and what a dead run left
// is removed, but not what a living one has.
func TestAUsersEtcdStaysAsItWas(t *testing.T) {
	t.Parallel()
	theirs := etcdtest.Start(t, 1)
	outside := theirs.Client(t)
	put := func(key string) {
		if _, err := outside.Put(t.Context(), key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	put("theirs")
	other := opened(t, store.Options{Address: "etcd://" + theirs.Endpoints[0]})
	put("lockbench:{" + other.runID + ":1:0}")
	for _, near := range []string{
		"lockbench:{team:1:0}", "shop:lockbench:{dead0000:1:0}:counter", "lockbench:{dead0000:1:0}/cart",
		"lockbench:{12345678:1:0}/6",
	} {
		put(near)
	}
	before := content(t, outside)
	put("lockbench:{dead0000:1:0}:counter")

	var warned []string
	warn := func(warning string) { warned = append(warned, warning) }
	at := store.Options{Address: "etcd://" + theirs.Endpoints[0], Warn: warn}
	server, err := Store{}.Open(t.Context(), "ab000000", at)
	if err != nil {
		t.Fatal(err)
	}
	s := server.(*Server)
	got := run(t, s, nil, func(w *workloads.Spec) { w.Work = workloads.WorkCounter })
	if whole := got.Server.Whole; whole == nil || whole.Calls == nil || whole.CPU == nil {
		t.Errorf("its counters are not told: %+v", whole)
	}
	times, err := s.RoundTrips(t.Context(), "lockbench:mine:floors")
	if err != nil || times.PingP50 == nil || *times.PingP50 <= 0 || *times.PingP99 < *times.PingP50 ||
		times.ScriptP50 == nil || *times.ScriptP50 <= 0 {
		t.Errorf("%+v (%v)", times, err)
	}
	if d := s.Describe(); d.Source != "address" || d.Name != "etcd" || d.Version == "" || d.Network != "loopback" {
		t.Errorf("%+v", d)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	told := len(warned) == 1 && strings.Contains(warned[0], "killed runs (dead0000) left 1 key on")
	if !told || content(t, outside) == before {
		t.Errorf("of what a killed one left it says %q", warned)
	}
	if swept, err := store.SweepAt(t.Context(), Store{}, at); err != nil || swept.Found != 1 {
		t.Errorf("swept %+v, %v", swept, err)
	}
	if after := content(t, outside); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestConnectionsHaveNames(t *testing.T) {
	server := opened(t, store.Options{Address: "etcd://" + common(t).to.endpoints[0]})
	connected, err := server.Connect(t.Context(), "lockbench:mine:run1:a", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	names, err := server.Connected(t.Context(), "lockbench:mine:run1:")
	if err != nil || !slices.Equal(names, []string{"lockbench:mine:run1:a"}) {
		t.Errorf("connected are %q (%v)", names, err)
	}
	left, err := server.Leftovers(t.Context(), "{mine:1:", "lockbench:mine:run1:a")
	if err != nil || len(left.Connections) != 1 || len(left.Keys) != 0 {
		t.Errorf("left are %+v (%v)", left, err)
	}
	if err := connected.Close(); err != nil {
		t.Error(err)
	}
	if names, _ := server.Connected(t.Context(), "lockbench:mine:run1:"); len(names) > 0 {
		t.Errorf("still connected are %q", names)
	}
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
	_, err := Store{}.Open(t.Context(), "mine", store.Options{})
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "apt-get install etcd-server") {
		t.Errorf("%v", err)
	}
}
