package store

import (
	"context"
	"slices"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Examiner is a Server that reports before a run the rights and commands that the run will lack there. It changes
// only one of lockbench's own keys, which it deletes.
type Examiner interface {
	// Needs returns what lockbench itself needs there, apart from the locks.
	Needs(Uses) []Need
	// Missing returns what is missing there of these rights. It asks with keys and channels in the names of which
	// {key} is prefix and key.
	Missing(ctx context.Context, rights strategies.Rights, prefix, key string) (Missing, error)
	// Grant returns the command with which an administrator gives the user these rights.
	Grant(rules []string) string
	// Symptoms returns further conditions that distort the figures of a run there, or endanger its locks.
	Symptoms(ctx context.Context) []results.Symptom
}

// Uses are what a run does with the servers apart from the locks.
type Uses struct {
	Baselines  bool
	Generators bool // several meet there
	Counter    bool // the locks protect a counter there
	Fenced     bool // which checks fencing tokens
	Faults     []workloads.Fault
}

// Need is a requirement of one part of a run.
type Need struct {
	By     string // the part, as the user knows it
	Rights strategies.Rights
	Costs  string // the figures that are unknown without the rights; "" if no run is possible without them
}

// Missing is what a server refuses.
type Missing struct {
	Rights   []string // that the user lacks, as rules of Grant
	Commands []string // that the server does not have
}

// Add adds what else is missing, each once.
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
