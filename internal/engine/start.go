package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// control holds the contexts that stop the clients of a run.
type control struct {
	acquire       context.Context // ends when the run is over: no client waits any longer
	cancelAcquire context.CancelFunc
	release       context.Context // ends only when draining has taken too long
	cancelRelease context.CancelFunc
	stopping      atomic.Bool // true once acquire has ended; cheaper to read
	trouble       chan struct{}
	running       sync.WaitGroup
}

// mostFollowed is the largest product of clients and keys for which the run records how soon each client reacquires a
// key. Each pair of a client and a key takes 8 bytes.
const mostFollowed = 4 << 20

// start starts all clients at the same instant and plans the window, which opens after the warm-up.
func (r *run) start(ctx context.Context) {
	w := r.Workload
	r.clock = measure.NewClock()
	r.control.acquire, r.control.cancelAcquire = context.WithCancel(ctx)
	r.control.release, r.control.cancelRelease = context.WithCancel(ctx)
	r.control.trouble = make(chan struct{}, 1)

	r.window = measure.NewWindow(r.clock, w.Iterations)
	r.recorder = measure.NewRecorder(r.window, w.Clients)
	followed := w.Clients
	if w.Clients*len(r.keys) > mostFollowed {
		followed = 0
	}
	if r.shared() && !r.info.Session {
		r.leases = &measure.Leases{}
	}
	for i := range r.keys {
		key := measure.NewKey(r.window, r.info.Capacity, time.Duration(w.TTL), followed)
		if r.info.Session {
			key.BySession()
		}
		if r.leases != nil {
			key.Follow(r.leases, i)
		}
		key.Across(w.Instances, w.Clients)
		r.audit = append(r.audit, key)
	}

	// The window is planned only when all goroutines exist and wait on begin, so that it does not include their creation.
	begin := make(chan int64)
	r.clients = make([]*client, w.Clients)
	for id := range r.clients {
		c := &client{
			run:      r,
			id:       id,
			instance: r.instances[id%len(r.instances)],
			record:   r.recorder.Client(id),
			waiter:   measure.NewWaiter(id),
			random:   clientRandom(w, r.Round, id),
		}
		r.clients[id] = c
		if r.driven != nil {
			continue // drive starts this client
		}
		r.control.running.Go(func() {
			defer c.returned.Store(true)
			since, going := <-begin, true
			for going {
				since, going = r.cycle(c, since)
			}
		})
	}
	now := r.clock.Now()
	if r.driven != nil {
		now += int64(driverLead)
		r.driven.begin(len(r.clients), now)
	}
	open, end := now+int64(w.Warmup), int64(0)
	if w.Iterations == 0 {
		end = open + int64(w.Duration)
	}
	r.window.Plan(open, end)
	if w.Slots() {
		r.recorder.OpenLoop()
	}
	r.arrivals = newArrivals(w, now, open, uint64(w.Seed)+uint64(r.Round))
	r.chooser = w.KeyDist.Over(w.Keys)
	r.herd = newHerd(r)
	r.faults = newFaults(ctx, r)
	for range r.clients {
		if r.driven == nil {
			begin <- now
		}
	}
	r.faults.start()
}

// clientRandom returns a client's source of random numbers for a round. Each client has its own source, so that its
// draws do not depend on the scheduling of other clients.
func clientRandom(w workloads.Spec, round, id int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(w.Seed), uint64(round)<<32|uint64(id)))
}

// shared reports whether other processes take part in the run.
func (r *run) shared() bool { return r.Generator != "" }

// sharedClientPrefix returns the prefix of the CLIENT names of all processes in a shared run.
func (r *run) sharedClientPrefix() string {
	return fmt.Sprintf("%s%s:run%d:", Prefix, r.Session, r.Number)
}

// punctual is how late a run may begin before it gets a label.
const punctual = 50 * time.Millisecond

// awaitStart measures the idle servers and then waits until the run begins. late is how late the run begins, or 0 if
// that delay is at most punctual.
func (r *run) awaitStart(ctx context.Context) (idle *idleCost, late time.Duration, err error) {
	if r.Begin == nil {
		return r.idleCPU(ctx), 0, nil
	}
	r.phase("wait for the start")
	start, err := r.Begin(ctx)
	if err != nil {
		return nil, 0, err
	}
	idle = r.idleTogether(ctx, start)
	left := time.Until(start)
	if left < -punctual {
		return nil, -left, nil
	}
	pause.Plain(ctx.Done(), left)
	return idle, 0, nil
}

// idleWindow is how long the idle servers are measured.
const idleWindow = 500 * time.Millisecond

// idleCost is the CPU usage of the servers when no client uses a lock.
type idleCost struct {
	cores   float64 // CPU cores used while the instances are connected and idle
	reading float64 // CPU seconds for one reading of the counters
}

// idleCPU measures the idle cost. It returns nil if the servers do not report their CPU time.
func (r *run) idleCPU(ctx context.Context) *idleCost {
	if !r.remote() {
		return nil
	}
	const readings = 4
	first := r.read(ctx)
	var from *results.Reading
	for range readings {
		from = r.read(ctx)
	}
	select {
	case <-time.After(idleWindow):
	case <-ctx.Done():
	}
	to := r.read(ctx)
	if first == nil || from == nil || to == nil || first.CPU == nil || from.CPU == nil || to.CPU == nil {
		return nil
	}
	seconds := to.At.Sub(from.At).Seconds()
	if seconds <= 0 {
		return nil
	}
	reading := (*from.CPU - *first.CPU) / readings
	return &idleCost{cores: max(0, *to.CPU-*from.CPU-reading) / seconds, reading: reading}
}

// idleTogether does the work of idleCPU if several generators take part. It measures shortly before their common start,
// when all are connected and none prepares or drains. Each generator takes one reading per second, as in the window.
// The measured CPU time therefore includes the cost of all readings.
func (r *run) idleTogether(ctx context.Context, start time.Time) *idleCost {
	const before = 2 * sampling
	if !r.remote() || time.Until(start) < before {
		return nil
	}
	pause.Plain(ctx.Done(), time.Until(start)-before)
	from := r.read(ctx)
	pause.Plain(ctx.Done(), sampling)
	to := r.read(ctx)
	if from == nil || to == nil || from.CPU == nil || to.CPU == nil {
		return nil
	}
	return &idleCost{cores: max(0, *to.CPU-*from.CPU) / to.At.Sub(from.At).Seconds()}
}

// goodbyes limits the time for which the last generator waits until the others have left the run. A few seconds
// suffice, because all windows end at the same time.
const goodbyes = 5 * time.Second

// last reports whether all other processes have left the run, so that the keys on the servers no longer change. Of the
// processes that are still connected, only the one with the greatest name waits for the others, for at most goodbyes.
// Every other process gets false at once.
func (r *run) last(ctx context.Context) bool {
	if !r.shared() {
		return true
	}
	hub, ok := r.Hub, true
	if hub == nil {
		hub, ok = r.Target.(store.Hub)
	}
	if !ok {
		r.errors.add(errors.New("find the other generators: the run has no Redis that all generators share"))
		return false
	}
	deadline := time.Now().Add(goodbyes)
	for !r.dead.Load() {
		attempt, cancel := context.WithTimeout(ctx, patience)
		names, err := hub.Connected(attempt, r.sharedClientPrefix())
		cancel()
		if err != nil {
			r.errors.add(fmt.Errorf("find the other generators: %w", err))
			return false
		}
		others := slices.DeleteFunc(names, func(name string) bool { return name == r.name })
		switch {
		case len(others) == 0:
			return true
		case slices.ContainsFunc(others, func(name string) bool { return name > r.name }), time.Now().After(deadline):
			return false
		}
		pause.Plain(ctx.Done(), 20*time.Millisecond)
	}
	return false
}
