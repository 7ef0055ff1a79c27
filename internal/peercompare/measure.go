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
	"github.com/lockbench/lockbench/strategies"
)

const (
	// pilot is the window of the first round, which is not counted.
	pilot = 5 * time.Second
	// A window is this many times the longest p99, within reason.
	timesP99                      = 10
	shortestWindow, longestWindow = 5 * time.Second, 30 * time.Second
)

// measure runs all rounds of all scenarios. The scenarios take turns within a round and
// the strategies within a scenario, so that drift hits all alike.
func measure(ctx context.Context, set settings, all []scenario, progress io.Writer) error {
	if err := emptied(set.data); err != nil {
		return err
	}
	windows := map[string]time.Duration{}
	rounds, expected := 0, time.Duration(0)
	for _, s := range all {
		windows[s.name] = set.window
		if set.window == 0 {
			report, err := once(ctx, set, s, 0, pilot, progress)
			if err != nil {
				return err
			}
			windows[s.name] = windowFor(report)
		}
		rounds = max(rounds, s.rounds)
		expected += time.Duration(s.rounds*len(s.strategies)) * (set.warmup + windows[s.name] + time.Second)
	}
	fmt.Fprintf(progress, "all rounds will take about %v\n", expected.Round(time.Minute))
	for round := 1; round <= rounds; round++ {
		for _, s := range all {
			if round > s.rounds {
				continue
			}
			report, err := once(ctx, set, s, round, windows[s.name], progress)
			if err != nil {
				return err
			}
			if ctx.Err() != nil {
				fmt.Fprintln(progress, "interrupted: the page is of what was measured up to here")
				return nil
			}
			if err := save(filepath.Join(set.data, fileName(s.name, round)), report); err != nil {
				return err
			}
		}
	}
	return nil
}

// windowFor is the window that a first round asks for.
func windowFor(report *results.Report) time.Duration {
	longest := time.Duration(0)
	for _, run := range report.Runs {
		if p99 := run.Waiting.PerClient.P99; p99 != nil {
			longest = max(longest, time.Duration(p99.NS))
		}
	}
	return min(max(timesP99*longest, shortestWindow), longestWindow)
}

// once runs one scenario for one round. What fails for some of its strategies only is
// told, and the others count.
func once(ctx context.Context, set settings, s scenario, round int, window time.Duration, progress io.Writer) (*results.Report, error) {
	variants, err := strategies.ParseVariants(strings.Join(s.strategies, ","))
	if err != nil {
		return nil, err
	}
	w, err := s.workload(set.warmup, window, int64(round)+1)
	if err != nil {
		return nil, err
	}
	plan := lockbench.Plan{
		Strategies: variants, Workload: w, Rounds: 1,
		Redis: lockbench.RedisOptions{Address: set.redis},
	}
	fmt.Fprintf(progress, "round %d of %d, %s: %d strategies, about %v\n",
		round, s.rounds, s.name, len(variants), plan.Expected().Round(time.Second))
	report, err := lockbench.Run(ctx, plan)
	switch {
	case report == nil || errors.Is(err, lockbench.ErrUnreachable) || errors.Is(err, lockbench.ErrConfig):
		return nil, fmt.Errorf("%s, round %d: %w", s.name, round, err)
	case err != nil:
		fmt.Fprintf(progress, "%s, round %d: %v\n", s.name, round, err)
	}
	return report, nil
}

// emptied makes the folder, without reports of an earlier time in it.
func emptied(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder for the reports: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(folder, fileName("*", -1)))
	if err != nil {
		return fmt.Errorf("look for old reports: %w", err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove an old report: %w", err)
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
