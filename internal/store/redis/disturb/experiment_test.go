package disturb_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/disturb"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

const (
	ttl   = 300 * time.Millisecond
	calm  = 20 * time.Second // what breaks no connection leaves no lock behind; no stall of the machine is to end a lease
	brief = "2ms"
)

// experiment is a run with a fault, or several of them, on servers of its own.
type experiment struct {
	strategy string
	topology string
	fault    string // several with blanks between them; the first is checked
	hold     string // of several locks if it is long; a fixed one has all be taken at 0, hold, 2 hold and so on

	check func(t *testing.T, s results.Strike, run *outcome, server *servers.Server)
}

// outcome is what an experiment came to, and how.
type outcome struct {
	*results.Run
	acquired []engine.Acquisition // in the order of their grants
}

// longestGap is for how long a client got nothing at most, and how many locks others
// got meanwhile.
func (o *outcome) longestGap(client int) (gap time.Duration, others int) {
	since, meanwhile := o.acquired[0].Granted, 0
	for i, a := range o.acquired {
		if a.Client != client {
			meanwhile++
		}
		if a.Client == client || i == len(o.acquired)-1 {
			if d := time.Duration(a.Granted - since); d > gap {
				gap, others = d, meanwhile
			}
			since, meanwhile = a.Granted, 0
		}
	}
	return gap, others
}

// enough acquisitions after a fault show that everybody goes on.
const enough = 100

// watch is an Observer, and Faults that it knows the end of.
type watch struct {
	store.Faults
	done func() // once there were enough; nil is never

	mu       sync.Mutex
	acquired []engine.Acquisition
	over     int // acquisitions until all faults were over; 0 before
}

func (w *watch) Holding(int)   {}
func (w *watch) Releasing(int) {}

func (w *watch) Acquired(a engine.Acquisition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acquired = append(w.acquired, a)
	if w.done != nil && w.over > 0 && len(w.acquired) == w.over+enough {
		w.done()
	}
}

func (w *watch) Prepare(ctx context.Context, fault workloads.Fault, where store.Scene) (store.Blow, error) {
	blow, err := w.Faults.Prepare(ctx, fault, where)
	last := &blow.End
	if blow.End == nil {
		last = &blow.Hit
	}
	do := *last
	*last = func(ctx context.Context) error {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.over = max(1, len(w.acquired))
		}()
		return do(ctx)
	}
	return blow, err
}

func (e experiment) run(t *testing.T) {
	var all []workloads.Fault
	for text := range strings.FieldsSeq(e.fault) {
		fault, err := workloads.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fault)
	}
	variants, err := strategies.ParseVariants(e.strategy)
	if err != nil {
		t.Fatal(err)
	}
	server, err := servers.Open(t.Context(), servers.Options{Address: servers.Quickest(), Topology: e.topology, RunID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	marked(t, server, true)
	if err := server.Settle(t.Context()); err != nil { // the replicas have it
		t.Fatal(err)
	}
	w := workloads.Default()
	w.Clients, w.Instances = 3, 3
	if err := w.Hold.UnmarshalText([]byte(e.hold)); err != nil {
		t.Fatal(err)
	}
	long := w.Hold.Mean()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := &watch{}
	// go-redis may wait a second before it dials a server again that had gone.
	w.Warmup, w.TTL, w.Duration, w.Faults = 0, workloads.Duration(max(ttl, long*3/2)), workloads.Duration(long*3/2+3500*time.Millisecond), all
	if e.hold != brief {
		w.Clients, w.Instances, w.Keys = 24, 6, 8
	} else {
		w.Duration, seen.done = workloads.Duration(30*time.Second), cancel
	}
	if all[0].Name == workloads.ScriptFlush || all[0].Name == workloads.KillSubscribers {
		w.TTL = workloads.Duration(calm)
	}
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	if wrong := disturb.Check(w.Faults, server.Topology(), true, false); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	injector := disturb.New(server, w.Faults)
	defer injector.Close()
	seen.Faults = injector
	run, err := engine.Job{
		Strategy: variants[0], Workload: w, Target: server, Faults: seen, Observer: seen, Session: "test", Number: 1, Round: 1, Order: 1,
	}.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, why := range run.Invalid {
		if !strings.HasPrefix(why, "it was observed for") { // the machine is busy with the other experiments
			t.Errorf("invalid: %s", why)
		}
	}
	for _, fault := range run.Faults {
		if len(fault.Strikes) != 1 {
			t.Fatalf("%v struck %d times, missed %v", fault.Fault, len(fault.Strikes), fault.Missed)
		}
	}
	struck := run.Faults[0].Strikes
	if struck[0].RecoveryNS == nil || struck[0].Stall == nil {
		t.Fatalf("it never recovered: %+v, errors %v", struck[0], run.Errors)
	}
	// Whatever happened, the servers are as they were.
	if err := server.Settle(t.Context()); err != nil {
		t.Error(err)
	}
	if err := server.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	slices.SortFunc(seen.acquired, func(a, b engine.Acquisition) int { return cmp.Compare(a.Granted, b.Granted) })
	e.check(t, struck[0], &outcome{run, seen.acquired}, server)
}

// together carries experiments out at the same time: they mostly wait, but not only.
func together(t *testing.T, experiments []experiment) {
	var all sync.WaitGroup
	atATime := make(chan struct{}, 6)
	for _, e := range experiments {
		all.Go(func() {
			atATime <- struct{}{}
			defer func() { <-atATime }()
			t.Run(e.strategy+" "+e.fault, e.run)
		})
	}
	all.Wait()
}

// patiently has an experiment be carried out up to three times if the machine was too
// busy for what it is to show to come about.
func patiently(e experiment, busy func(s results.Strike, run *outcome) bool) experiment {
	check, tries := e.check, 0
	e.check = func(t *testing.T, s results.Strike, run *outcome, server *servers.Server) {
		if tries++; tries < 3 && busy(s, run) {
			t.Logf("the machine is too busy, once more: %+v, faults %+v", s, run.Faults)
			e.run(t)
			return
		}
		check(t, s, run, server)
	}
	return e
}

// nobodyCame says whether no waiter has got a lock that had been lost before its
// holder gave it up: they try several times a second.
func nobodyCame(s results.Strike, run *outcome) bool {
	return run.Safety.Overlaps == 0 && *s.RecoveryNS > int64(time.Second)
}
