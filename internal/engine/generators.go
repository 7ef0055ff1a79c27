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

// crowd begins the CLIENT names of all who take part in a shared run.
func (r *run) crowd() string { return fmt.Sprintf("%s%s:run%d:", Prefix, r.Session, r.Number) }

// punctual is how late a run may begin without it being said.
const punctual = 50 * time.Millisecond

// awaitStart passes the time until the run is to begin, and returns by how much
// that has been missed.
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

// goodbyes is how long the last generator waits for the others to leave: their
// windows end when its own does, give or take how well their clocks agree.
const goodbyes = 5 * time.Second

// last says whether no other process takes part in the run any more, so that
// what is on the servers now stays. Of those that are there still the one
// whose name comes last waits for the others; they leave it to that one.
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
