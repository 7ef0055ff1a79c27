package servers

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

const (
	ttl = 300 * time.Millisecond
	// what breaks no connection leaves no lock behind; no stall of the machine is to end a lease
	calm  = 20 * time.Second
	brief = "2ms"
	// untilAnother is brief, but for one client that holds the lock from before the fault
	// until another holds it too, and untilOver until the fault has come about: what happens
	// when is a matter of events, see order.
	untilAnother, untilOver = "until another", "until over"
)

// experiment is a run with a fault, or several of them, on servers of its own.
type experiment struct {
	strategy string
	topology string
	fault    string // several with blanks between them; the first is checked
	hold     string // of several locks if it is long; a fixed one has all be taken at 0, hold, 2 hold and so on
	marks    int    // nodes that have a foreign key afterwards

	check func(*testing.T, *outcome)
}

// outcome is the result of an experiment.
type outcome struct {
	*results.Run
	acquired []engine.Acquisition // in the order of their grants
	strike   results.Injection    // of the first fault
	server   *Server
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

// watch is an Observer, and Faults that it knows the end of.
type watch struct {
	store.Faults
	done   func() // once there were enough
	enough int    // acquisitions after all faults that show that all clients continue

	mu       sync.Mutex
	acquired []engine.Acquisition
	over     int // acquisitions until all faults were over; 0 before

	order  order
	pin    *pin
	server *Server
}

func (w *watch) Holding(int)   { w.pin.holding() }
func (w *watch) Releasing(int) { w.pin.releasing() }

func (w *watch) Acquired(a engine.Acquisition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acquired = append(w.acquired, a)
	if w.over > 0 && len(w.acquired) == w.over+w.enough {
		w.done()
	}
}

func (w *watch) Prepare(ctx context.Context, fault workloads.Fault, where store.RunMarks) (store.Action, error) {
	action, err := w.Faults.Prepare(ctx, fault, where)
	if w.order != nil && err == nil {
		w.order(w.pin, w.server, fault, &action)
	}
	last := &action.End
	if action.End == nil {
		last = &action.Hit
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
	return action, err
}

func (e experiment) run(t *testing.T) {
	var all []workloads.Fault
	for text := range strings.FieldsSeq(e.fault) {
		fault, err := workloads.ParseFault(text)
		must(t, err)
		all = append(all, fault)
	}
	variants, err := strategies.ParseVariants(e.strategy)
	must(t, err)
	server := open(t, Options{Address: redisserver.Quickest(), Topology: e.topology, RunID: "e5700000"})
	marked(t, server, true)
	must(t, server.Settle(t.Context())) // the replicas have it
	w := workloads.Default()
	w.Clients, w.Instances = 3, 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := &watch{pin: newPin(), server: server, done: cancel, enough: 100}
	switch e.hold {
	case untilAnother:
		e.hold, seen.order = brief, orderOf(all)
	case untilOver:
		e.hold, seen.order = brief, heldUntilOver
	}
	must(t, w.Hold.UnmarshalText([]byte(e.hold)))
	w.Warmup, w.TTL, w.Duration, w.Faults = 0, workloads.Duration(max(ttl, w.Hold.Mean()*3/2)),
		workloads.Duration(time.Minute), all
	if e.hold != brief {
		w.Clients, w.Instances, w.Keys, seen.enough = 24, 6, 8, 24
	}
	if all[0].Name == workloads.ScriptFlush || all[0].Name == workloads.KillSubscribers || seen.order != nil {
		w.TTL = workloads.Duration(calm)
	}
	must(t, append(server.Impossible(w.Faults), w.Validate())...)
	injector := server.Faults(w.Faults)
	defer injector.Close()
	seen.Faults = injector
	run, err := engine.Job{
		Strategy: variants[0], Workload: w, Target: server, Faults: seen, Observer: seen, Session: "e5700000",
		Number: 1, Round: 1, Order: 1,
	}.Run(ctx)
	must(t, err)
	for _, why := range run.Invalid {
		// The machine is busy with the other experiments.
		if why.Code != results.SeenLate && why.Code != results.StoodStill {
			t.Errorf("invalid: %s", why)
		}
	}
	for _, fault := range run.Faults {
		if len(fault.Injections) != 1 {
			t.Fatalf("%v struck %d times, missed %v", fault.Fault, len(fault.Injections), fault.Missed)
		}
	}
	struck := run.Faults[0].Injections
	if struck[0].RecoveryNS == nil || struck[0].Stall == nil {
		t.Fatalf("it never recovered: %+v, errors %v", struck[0], run.Errors)
	}
	// Whatever happened, the servers are as they were.
	must(t, server.Settle(t.Context()), server.Ping(t.Context()))
	slices.SortFunc(seen.acquired, func(a, b engine.Acquisition) int { return cmp.Compare(a.Granted, b.Granted) })
	if got := marked(t, server, false); got != e.marks {
		t.Errorf("%d nodes have a foreign key, want %d", got, e.marks)
	}
	e.check(t, &outcome{run, seen.acquired, struck[0], server})
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
