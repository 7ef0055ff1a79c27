package store

import (
	"context"
	"slices"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Examiner is a Server that reports, before a run, which rights and commands the run needs but the server refuses. Its
// tests write a single key of lockbench and then delete this key.
type Examiner interface {
	// Needs returns the requirements of lockbench itself, without the requirements of the strategies' locks.
	Needs(Uses) []Need
	// Missing returns the rights that the user lacks and the commands that the server lacks. It tests the rights on the
	// keys and channels in rights, in whose names {key} stands for prefix followed by key. The name of every key of the
	// run begins with prefix.
	Missing(ctx context.Context, rights strategies.Rights, prefix, key string) (Missing, error)
	// Grant returns the command with which an administrator gives the user the rights in rules.
	Grant(rules []string) string
	// Symptoms returns conditions on the servers, other than missing rights, that distort the figures of a run or endanger
	// its locks.
	Symptoms(ctx context.Context) []results.Symptom
}

// Uses describes what a run uses the servers for in addition to the locks.
type Uses struct {
	Baselines  bool
	Generators bool // several generators coordinate through the server
	Counter    bool // the locks protect a counter on the server
	Fenced     bool // the counter checks fencing tokens
	Faults     []workloads.Fault
}

// Need is a requirement of one part of a run.
type Need struct {
	By     string // the part, under the name that a user knows
	Rights strategies.Rights
	Costs  string // the figures that are unknown without the rights; "" if no run is possible without them
}

// Missing lists what a server refuses to a run.
type Missing struct {
	Rights   []string // rights that the user lacks, in the form that Grant takes
	Commands []string // commands that the server does not know
}

// Add adds the entries of more that m does not contain yet.
func (m *Missing) Add(more Missing) {
	m.Rights, m.Commands = union(m.Rights, more.Rights), union(m.Commands, more.Commands)
}

func union(all, more []string) []string {
	for _, one := range more {
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
