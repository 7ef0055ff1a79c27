package command

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results/compare"
)

// pairedRuns runs two builds in turns, pair by pair.
type pairedRuns struct {
	app        *app
	ab         *ab
	redis      lockbench.StoreOptions
	programs   [2]string // base, head
	flags      []string
	dir        string // of the reports
	temporary  bool
	base, head compare.Side // their reports, of complete pairs only
}

// newPairedRuns checks the two builds and makes a directory for their reports.
func newPairedRuns(ctx context.Context, a *app, f *ab, builds [2]string, flags []string) (*pairedRuns, error) {
	t := &pairedRuns{app: a, ab: f, flags: flags, dir: f.keep, base: compare.Side{Name: builds[0]}, head: compare.Side{Name: builds[1]}}
	var problems []error
	for i, name := range builds {
		path, err := binary(name)
		if err == nil {
			err = isLockbench(ctx, name, path)
		}
		t.programs[i] = path
		problems = append(problems, err)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if t.dir != "" {
		if err := os.Mkdir(t.dir, 0o777); err != nil {
			return nil, fmt.Errorf("--keep: %w", err)
		}
		return t, nil
	}
	dir, err := os.MkdirTemp("", "lockbench-ab-")
	if err != nil {
		return nil, &exit{ExitFailure, fmt.Errorf("make a place for reports: %w", err)}
	}
	t.dir, t.temporary = dir, true
	return t, nil
}

// close removes the reports, unless the user keeps them.
func (t *pairedRuns) close() {
	if t.temporary {
		if err := os.RemoveAll(t.dir); err != nil {
			t.app.say("warning: remove %s: %s", t.dir, err)
		}
	}
}

// run runs the pairs until they are done, ctx ends or a build cannot be measured.
func (t *pairedRuns) run(ctx context.Context) error {
	for i, headFirst := range order(t.ab.pairs, t.ab.seed) {
		sides := [2]int{0, 1}
		if headFirst {
			sides = [2]int{1, 0}
		}
		var pair [2]compare.Report
		for _, side := range sides {
			if ctx.Err() != nil {
				return nil
			}
			report, err := t.runOne(ctx, side, i+1)
			if err != nil {
				return err
			}
			pair[side] = report
		}
		if ctx.Err() != nil { // the second run was cut short
			return nil
		}
		t.base.Reports = append(t.base.Reports, pair[0])
		t.head.Reports = append(t.head.Reports, pair[1])
		if !t.ab.quiet {
			fmt.Fprintf(t.app.stderr, "[%d/%d] %s\n", i+1, t.ab.pairs, t.pairLine(pair))
		}
	}
	return nil
}

// runOne runs one build once.
func (t *pairedRuns) runOne(ctx context.Context, side, pair int) (compare.Report, error) {
	name := [2]string{"base", "head"}[side]
	file := fmt.Sprintf("%s-%03d.json", name, pair)
	child := child{
		program: t.programs[side], flags: t.flags, redis: t.redis, seed: pair,
		report: filepath.Join(t.dir, file),
	}
	report, err := child.run(ctx)
	if err != nil && ctx.Err() == nil {
		return compare.Report{}, fmt.Errorf("%s, run %d: %w", name, pair, err)
	}
	return compare.Report{File: file, Report: report}, nil
}

// pairLine is the progress line of a pair.
func (t *pairedRuns) pairLine(pair [2]compare.Report) string {
	one := func(side int) compare.Side { return compare.Side{Reports: []compare.Report{pair[side]}} }
	return compare.Glance(one(0), one(1), t.ab.gate.rules)
}

// order says for each pair whether the head goes first: in half of the pairs, in an
// order shuffled by the seed. So neither side gains from its position or from a
// rhythm of the machine.
func order(pairs int, seed int) []bool {
	headFirst := make([]bool, pairs)
	for i := range headFirst {
		headFirst[i] = i%2 == 1
	}
	shuffle := mathrand.New(mathrand.NewPCG(uint64(seed), uint64(pairs)))
	shuffle.Shuffle(pairs, func(i, j int) { headFirst[i], headFirst[j] = headFirst[j], headFirst[i] })
	return headFirst
}
