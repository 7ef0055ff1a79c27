package lockbench

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// shelf is a minimal store: a map of keys to owners in this process.
type shelf struct{ opened []*shelfServer }

func (*shelf) Schemes() []string { return []string{"shelf"} }

func (*shelf) Validate(store.Options) error { return nil }

func (*shelf) Layout(store.Options) store.Layout { return shelfLayout{} }

func (s *shelf) Open(context.Context, string, store.Options) (store.Server, error) {
	server := &shelfServer{owners: map[string]string{}}
	s.opened = append(s.opened, server)
	return server, nil
}

type shelfLayout struct{}

func (shelfLayout) Unfit(info strategies.Info) string {
	if info.Nodes > 1 {
		return "there is one shelf"
	}
	return ""
}

func (shelfLayout) Primaries() int { return 1 }

func (shelfLayout) Impossible(all []workloads.Fault) []error {
	if len(all) > 0 {
		return []error{errors.New("nothing can happen to a shelf")}
	}
	return nil
}

type shelfServer struct {
	shelfLayout
	store.Without
	mu       sync.Mutex
	owners   map[string]string
	commands int64
	closed   bool
}

func (s *shelfServer) command(do func(owners map[string]string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands++
	do(s.owners)
}

func (s *shelfServer) Connect(context.Context, string, int, store.Through) (store.Instance, error) {
	return shelfInstance{server: s}, nil
}
func (*shelfServer) Ping(context.Context) error { return nil }
func (*shelfServer) Local() bool                { return true }
func (s *shelfServer) Read(context.Context) (results.Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return results.Reading{At: time.Now(), Commands: map[string]int64{"any": s.commands}}, nil
}

func (s *shelfServer) Leftovers(_ context.Context, mark, _ string) (results.Leftovers, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left results.Leftovers
	for key := range s.owners {
		if strings.Contains(key, mark) {
			left.Keys = append(left.Keys, key)
		}
	}
	return left, nil
}

func (s *shelfServer) Remove(_ context.Context, keys []string) error {
	s.command(func(owners map[string]string) {
		for _, key := range keys {
			delete(owners, key)
		}
	})
	return nil
}
func (*shelfServer) Refused(error) string                         { return "" }
func (*shelfServer) Unauthorised(string) bool                     { return false }
func (*shelfServer) Describe() results.Redis                      { return results.Redis{Source: "shelf"} }
func (*shelfServer) RunIDs() []string                             { return nil }
func (*shelfServer) Limits(context.Context) (store.Limits, error) { return store.Limits{}, nil }
func (*shelfServer) Faults([]workloads.Fault) store.Injector      { return nil }
func (*shelfServer) Settle(context.Context) error                 { return nil }
func (s *shelfServer) Close(context.Context) error                { s.closed = true; return nil }
func (*shelfServer) RoundTrips(context.Context, string) (store.RoundTrips, error) {
	return store.RoundTrips{}, nil
}

type shelfInstance struct {
	store.Without
	server *shelfServer
}

func (i shelfInstance) Nodes() []any { return []any{i.server} }
func (shelfInstance) Close() error   { return nil }

// shelfLock is a spin lock on a shelf.
type shelfLock struct {
	strategies.ConfigOf[*shelfServer]
}

func (shelfLock) Close() error { return nil }

func (l shelfLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	for ctx.Err() == nil {
		taken := false
		l.Nodes[0].command(func(owners map[string]string) {
			if taken = owners[l.Key(key)] == ""; taken {
				owners[l.Key(key)] = "somebody"
			}
		})
		if taken {
			return shelfLease{l, l.Key(key)}, nil
		}
		time.Sleep(time.Millisecond)
	}
	return nil, ctx.Err()
}

type shelfLease struct {
	shelfLock
	key string
}

func (l shelfLease) Release(context.Context) error {
	l.Nodes[0].command(func(owners map[string]string) { delete(owners, l.key) })
	return nil
}

// The packages that drive locks must not depend on a particular store, so a run must work with shelf, which keeps its
// keys in this process.
func TestRunOnInMemoryStore(t *testing.T) {
	name := rand.Text() // a new name for each run of the test
	info := strategies.Info{
		Name: "on-a-shelf", Store: name, Capacity: 1, Nodes: 1,
		Claims: strategies.Claims{Exclusion: true},
	}
	lock := strategies.Unlisted(info, func(c strategies.ConfigOf[*shelfServer]) (shelfLock, error) {
		return shelfLock{c}, nil
	})
	quorum := info
	quorum.Name, quorum.Nodes = "on-three", 3
	three := strategies.Unlisted(quorum, func(c strategies.ConfigOf[*shelfServer]) (shelfLock, error) {
		return shelfLock{c}, nil
	})
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup, w.Duration = 3, 3, 0, workloads.Duration(700*time.Millisecond)
	w.Hold = workloads.Fixed(time.Millisecond) // leaves CPU time for the readings
	kind := new(shelf)
	store.Register(name, kind)
	report, err := Run(t.Context(), Plan{
		Strategies: []strategies.Variant{lock, three}, Workload: w, Rounds: 1,
		Baselines: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(kind.opened) != 1 || !kind.opened[0].closed || len(report.Stores) != 1 ||
		report.Stores[0].Server.Source != "shelf" || report.Redis.Source != "none" {
		t.Errorf("%d were started, of %+v", len(kind.opened), report.Stores)
	}
	if len(report.LeftOut) != 1 || report.LeftOut[0].Why.Text != "there is one shelf" {
		t.Errorf("left out: %+v", report.LeftOut)
	}
	if len(report.Runs) != 1 {
		t.Fatalf("%d runs", len(report.Runs))
	}
	if r := report.Runs[0]; !drive.Sound(&r) || r.Safety.Overlaps != 0 || r.Speed.Acquisitions < 10 {
		t.Errorf("%d acquisitions, %d overlaps, invalid %q", r.Speed.Acquisitions, r.Safety.Overlaps, r.Invalid)
	}
	whole := report.Runs[0].Server.Whole
	if whole == nil || whole.Calls == nil || float64(*whole.Calls) < 2*float64(whole.Acquisitions) {
		t.Errorf("an acquisition and a release must be two commands: %+v", whole)
	}
	if left := report.Runs[0].Safety.LeftoverCount; left == nil || *left != 0 {
		t.Errorf("leftovers: %v", report.Runs[0].Safety.Leftovers)
	}
}

// The store has nodes of the type *shelfServer, but the strategy expects int. Run must return an error, not panic.
func TestStrategyRejectsOtherStores(t *testing.T) {
	name := rand.Text()
	lock := strategies.Unlisted(strategies.Info{Name: "on-another", Store: name, Capacity: 1, Nodes: 1},
		func(strategies.ConfigOf[int]) (shelfLock, error) { return shelfLock{}, nil })
	w := workloads.Default()
	w.Warmup, w.Duration = 0, workloads.Duration(100*time.Millisecond)
	store.Register(name, new(shelf))
	if _, err := Run(t.Context(), Plan{Strategies: []strategies.Variant{lock}, Workload: w, Rounds: 1}); err == nil ||
		!strings.Contains(err.Error(), "needs a node of type") {
		t.Errorf("error %v", err)
	}
}
