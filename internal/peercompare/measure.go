package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// measure runs all rounds of all scenarios. The scenarios take turns within a round and
// the strategies within a scenario, so that drift hits all alike.
func measure(ctx context.Context, set settings, all []scenario, progress io.Writer) error {
	if err := emptied(set.data, all); err != nil {
		return err
	}
	for round := 1; round <= set.rounds; round++ {
		began := time.Now()
		for _, s := range all {
			if err := once(ctx, set, s, round, progress); err != nil {
				return err
			}
			if ctx.Err() != nil {
				fmt.Fprintln(progress, "interrupted: the page is of what was measured up to here")
				return nil
			}
		}
		took := time.Since(began)
		fmt.Fprintf(progress, "round %d of %d took %v; the rest will take about %v\n",
			round, set.rounds, took.Round(time.Second), (took * time.Duration(set.rounds-round)).Round(time.Second))
	}
	return nil
}

// once runs one scenario for one round and saves the report. What fails for some of its
// strategies only is told, and the others count.
func once(ctx context.Context, set settings, s scenario, round int, progress io.Writer) error {
	variants, missing := available(s.strategies)
	if round == 1 && len(missing) > 0 {
		fmt.Fprintf(progress, "%s: left out, as there is no such strategy: %s\n", s.name, strings.Join(missing, ", "))
	}
	plan := lockbench.Plan{
		Strategies: variants, Workload: s.workload(set.warmup, set.window, int64(round)+1), Rounds: 1,
		Redis: lockbench.RedisOptions{Address: set.redis},
	}
	fmt.Fprintf(progress, "round %d of %d, %s: %d strategies\n", round, set.rounds, s.name, len(variants))
	report, err := s.run(ctx, plan)
	switch {
	case errors.Is(err, lockbench.ErrUnreachable) || errors.Is(err, lockbench.ErrConfig):
		return fmt.Errorf("%s, round %d: %w", s.name, round, err)
	case ctx.Err() != nil:
		return nil
	case err != nil:
		fmt.Fprintf(progress, "%s, round %d: %v\n", s.name, round, err)
	}
	if report == nil {
		return nil
	}
	for _, run := range report.Runs {
		if !run.Valid() {
			fmt.Fprintf(progress, "%s, round %d: %s cannot be trusted: %s\n", s.name, round, run.Strategy, strings.Join(run.Invalid, "; "))
		}
	}
	return save(filepath.Join(set.data, fileName(s.name, round)), report)
}

// run carries a plan out the way the deployment asks for.
func (s scenario) run(ctx context.Context, plan lockbench.Plan) (*results.Report, error) {
	switch {
	case s.processes > 0:
		return together(ctx, plan, s.processes)
	case s.oneWay > 0:
		return afar(ctx, plan, s.oneWay)
	}
	return lockbench.Run(ctx, plan)
}

// emptied makes the folder, without reports of these scenarios in it.
func emptied(folder string, all []scenario) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder for the reports: %w", err)
	}
	for _, s := range all {
		old, err := filepath.Glob(filepath.Join(folder, fileName(s.name, -1)))
		if err != nil {
			return fmt.Errorf("look for old reports: %w", err)
		}
		for _, path := range old {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove an old report: %w", err)
			}
		}
	}
	return nil
}

// fileName is that of a report; round -1 is any.
func fileName(scenario string, round int) string {
	if round < 0 {
		return scenario + "-round*.json"
	}
	return fmt.Sprintf("%s-round%03d.json", scenario, round)
}

func save(path string, report *results.Report) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("save a report: %w", err)
	}
	return errors.Join(results.WriteJSON(file, report), file.Close())
}
