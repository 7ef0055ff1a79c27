package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
)

// shared says whether other processes take part in the run.
func (r *run) shared() bool { return r.Generator != "" }

// crowd is the prefix of the CLIENT names of all processes in a shared run.
func (r *run) crowd() string { return fmt.Sprintf("%s%s:run%d:", Prefix, r.Session, r.Number) }

// punctual is how late a run may begin without a label.
const punctual = 50 * time.Millisecond

// awaitStart waits until the run is to begin. It returns the delay if that instant has
// passed, else 0.
func (r *run) awaitStart(ctx context.Context) (late time.Duration) {
	if r.Start.IsZero() {
		return 0
	}
	left := time.Until(r.Start)
	if left < -punctual {
		return -left
	}
	r.phase("wait for the start")
	pause.Plain(ctx.Done(), left)
	return 0
}

// goodbyes is how long the last generator waits for the others to leave. Their windows end
// at the same time as its own, apart from the difference of their clocks.
const goodbyes = 5 * time.Second

// last says whether no other process takes part in the run any more; then the keys on the
// servers do not change any more. Among the remaining processes only the one with the
// greatest name waits for the others; the rest return false at once.
func (r *run) last(ctx context.Context) bool {
	if !r.shared() {
		return true
	}
	deadline := time.Now().Add(goodbyes)
	for !r.dead.Load() {
		attempt, cancel := context.WithTimeout(ctx, patience)
		names, err := r.Target.Connected(attempt, r.crowd())
		cancel()
		if err != nil {
			r.errors.add(fmt.Errorf("look for the other generators: %w", err))
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
