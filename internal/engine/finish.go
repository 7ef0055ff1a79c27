package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// stop makes the clients stop after the end of the window. It ends their waits, holds and pauses.
func (r *run) stop() {
	r.control.stopping.Store(true)
	r.control.cancelAcquire()
}

const (
	// drainLimit is how long the clients may take to return after stop. Then their connections are closed.
	drainLimit = 15 * time.Second
	// hangUpLimit is how long the clients may take to return after their connections are closed.
	hangUpLimit = 5 * time.Second
)

// drain waits until every client has returned. It gives up on clients that do not return even after their connections
// are closed, and the run reports them.
func (r *run) drain() {
	defer r.control.cancelRelease()
	back := make(chan struct{})
	go func() {
		r.control.running.Wait()
		close(back)
	}()
	limit, gone := time.After(drainLimit), r.life.Done()
	for waiting := true; waiting; {
		select {
		case <-back:
			return
		case <-gone:
			if gone = nil; r.dead.Load() { // waiting is useless because the server replies to no client
				r.phase(PhaseGone)
				r.sockets.Cut(ErrServerGone)
			}
		case <-limit:
			waiting = false
		}
	}
	r.control.cancelRelease()
	r.closeNodes()
	select {
	case <-back:
		return
	case <-time.After(hangUpLimit):
	}
	for _, c := range r.clients {
		if !c.returned.Load() {
			r.hung = append(r.hung, c.id)
		}
	}
	if len(r.hung) == 0 {
		r.errors.add(errors.New("the client that a fault uses did not stop after the end of the run"))
	}
	r.recorder.Drop(r.hung)
}

// verify closes the instances and returns the names of the keys, channels and connections that they left on the
// servers.
func (r *run) verify(ctx context.Context) []string {
	r.closeLockers()
	if !r.remote() {
		return nil
	}
	// Look for leftovers before closeNodes, because closing a connection also ends the subscriptions that the strategy did
	// not end.
	var left []string
	r.closing = r.last(ctx)
	if r.closing {
		if r.shared() {
			r.counts = r.counters(ctx)
		}
		left = r.spare(r.settle(ctx, "", r.undeclared))
	} else {
		r.unseen = true // other processes still use the keys, so they are not leftovers yet
	}
	r.closeNodes()
	for _, connection := range r.settle(ctx, r.name, func(l results.Leftovers) []string { return l.Connections }) {
		left = append(left, "connection "+connection)
	}
	return left
}

// undeclared returns the names of the leftover keys that the strategy does not declare, and of the channels that still
// have a subscription.
func (r *run) undeclared(l results.Leftovers) []string {
	var names []string
	for _, key := range l.Keys {
		if !r.declared(key) {
			names = append(names, leftKey+key)
		}
	}
	for _, channel := range l.Channels {
		names = append(names, "channel "+channel)
	}
	return names
}

// spare removes the keys of locks from the leftovers if clients of a driver were still waiting when its processes
// ended. Many libraries cannot end a wait. The server may then grant a lock to a dead process, and no client releases
// it.
func (r *run) spare(left []string) []string {
	if r.driven == nil || r.driven.unended == 0 {
		return left
	}
	all := len(left)
	left = slices.DeleteFunc(left, func(name string) bool {
		key, isKey := strings.CutPrefix(name, leftKey)
		return isKey && slices.ContainsFunc(r.keys, func(k string) bool { return matches(r.info.Keys, k, key) })
	})
	r.unended = all - len(left)
	return left
}

// leftKey is the prefix of leftovers that are keys, not channels or connections.
const leftKey = "key "

// settling is how long a server may take to notice that a connection or a subscription has been closed.
const settling = 2 * time.Second

// settle looks for leftovers until there are none or settling has passed, and returns those that remain.
func (r *run) settle(ctx context.Context, name string, pick func(results.Leftovers) []string) []string {
	if r.dead.Load() {
		r.unseen = true
		return nil
	}
	deadline := time.Now().Add(settling)
	for {
		attempt, cancel := context.WithTimeout(ctx, patience)
		found, err := r.Target.Leftovers(attempt, r.sign, name)
		cancel()
		if err != nil {
			r.unseen = true
			r.errors.add(fmt.Errorf("look for leftovers: %w", err))
			return nil
		}
		picked := pick(found)
		if len(picked) == 0 || time.Now().After(deadline) {
			return picked
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// cleanUp deletes every key of the run that the strategy or the workload may have created. In a shared run only the
// last generator deletes keys, because clients of the other generators may still hold locks.
func (r *run) cleanUp(ctx context.Context) {
	if !r.remote() || r.dead.Load() || !r.closing && !r.last(ctx) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	targets := []store.Target{r.Target}
	if r.Hub != nil {
		targets = append(targets, r.Hub)
	}
	for _, target := range targets {
		found, err := target.Leftovers(ctx, r.sign, "")
		if err == nil && len(found.Keys) > 0 {
			err = target.Remove(ctx, slices.DeleteFunc(found.Keys, func(key string) bool { return !r.ownsKey(key) }))
		}
		if err != nil {
			r.errors.add(fmt.Errorf("clean up: %w", err))
		}
	}
}

// lostUpdates returns how many confirmed updates the counters or rows do not contain. It returns nil if the workload
// has neither, or if it is unknown which updates were made or kept.
func (r *run) lostUpdates(ctx context.Context) *int64 {
	if r.transacts() {
		return r.lostRows(ctx)
	}
	if r.shared() || r.uncertain.Load() > 0 || r.Hub == nil && r.faults.loses {
		return nil
	}
	counts := r.counters(ctx)
	if counts == nil {
		return nil
	}
	return r.missing(counts)
}

// missing returns the number of confirmed updates that are missing from the counters' values. counts holds these values
// by key.
func (r *run) missing(counts []int64) *int64 {
	var lost int64
	for i, n := range counts {
		lost += max(0, r.done[i].Load()-n)
	}
	return &lost
}

// counters returns the values of the counters by key; nil if there are none or they cannot be read.
func (r *run) counters(ctx context.Context) []int64 {
	if r.Workload.Work != workloads.WorkCounter || r.dead.Load() || r.instances[0].closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	through := r.instances[0]
	if through.counters == nil { // the instance of a driver has no counters in this process
		through = &instance{}
		defer func() { _ = through.hangUp() }()
		if err := r.connect(ctx, through, 1, r.sockets.Through, r.sockets.Through); err != nil {
			r.errors.add(fmt.Errorf("read the counters: %w", err))
			return nil
		}
	}
	var counts []int64
	for _, key := range r.keys {
		n, err := through.counters.Counter(counterOf(key), workloads.FenceOff, 0).Read(ctx)
		if err != nil {
			r.errors.add(err)
			return nil
		}
		counts = append(counts, n)
	}
	return counts
}
