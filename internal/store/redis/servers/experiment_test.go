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
	// calm is the TTL in experiments whose faults leave no lock behind. It is longer than any stall of the machine, so
	// that no lease ends because of one.
	calm  = 20 * time.Second
	brief = "2ms"
	// With one of these holds, a client that acquires the lock just before the fault keeps it until another client has the
	// lock too (untilAnother) or until the fault is over (untilOver). All other holds last for brief. The outcome thus
	// depends on the order of events and not on times; see order.
	untilAnother, untilOver = "until another", "until over"
)

// experiment is a run with one or several faults, on servers that no other experiment uses.
type experiment struct {
	strategy string
	topology string
	fault    string // one or several, separated by blanks; check gets the first
	hold     string // any other than brief uses several locks, all taken at 0, hold, 2 hold and so on if it is fixed
	marks    int    // number of nodes that still have a foreign key afterwards

	check func(*testing.T, *outcome)
}

// outcome is the result of an experiment. The experiment's check judges it.
type outcome struct {
	*results.Run
	acquired []engine.Acquisition // in the order of their grants
	strike   results.Injection    // of the first fault
	server   *Server
}

// longestGap returns the longest time in which this client acquired no lock, and the number of locks that other clients
// acquired in that time.
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

// watch is the Observer of an experiment's run. It wraps the run's Faults, so that it learns when the last fault has
// ended.
type watch struct {
	store.Faults
	done   func() // called after enough acquisitions
	enough int    // number of acquisitions after all faults that proves that all clients continue

	mu       sync.Mutex
	acquired []engine.Acquisition
	over     int // number of acquisitions when the last fault ended; 0 before that

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
	must(t, server.Settle(t.Context())) // the replicas have the key
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
		// Other experiments run at the same time and keep the machine busy. A run may therefore be invalid for these two
		// reasons.
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
	// After any fault, the servers must be in their original state.
	must(t, server.Settle(t.Context()), server.Ping(t.Context()))
	slices.SortFunc(seen.acquired, func(a, b engine.Acquisition) int { return cmp.Compare(a.Granted, b.Granted) })
	if got := marked(t, server, false); got != e.marks {
		t.Errorf("%d nodes have a foreign key, want %d", got, e.marks)
	}
	e.check(t, &outcome{run, seen.acquired, struck[0], server})
}

// together runs experiments concurrently, at most six at a time. They mostly wait, so they need little CPU time.
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
