package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// round is one scenario's runs of one round, by strategy; those that cannot be trusted
// are not in it.
type round map[string]results.Run

// measured is all rounds of a scenario.
type measured struct {
	scenario
	rounds  []round
	reports []*results.Report
	left    int // runs that cannot be trusted
}

// read reads a folder's reports.
func read(folder string, all []scenario) ([]measured, error) {
	var found []measured
	for _, s := range all {
		paths, err := filepath.Glob(filepath.Join(folder, fileName(s.name, -1)))
		if err != nil {
			return nil, fmt.Errorf("look for reports: %w", err)
		}
		m := measured{scenario: s}
		for _, path := range paths { // in the order of the rounds
			report, err := readReport(path)
			if err != nil {
				return nil, err
			}
			m.add(report)
		}
		if len(m.rounds) > 0 {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no report of any scenario in %q", folder)
	}
	return found, nil
}

func readReport(path string) (*results.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open a report: %w", err)
	}
	report, err := results.ReadJSON(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return report, nil
}

func (m *measured) add(report *results.Report) {
	r := round{}
	for _, run := range report.Runs {
		if !run.Complete() {
			m.left++
			continue
		}
		if len(report.Parts) > 0 {
			run.Speed.Gap = idle(report, run)
		}
		r[run.Strategy] = run
	}
	for _, s := range report.Strategies {
		if !slices.Contains(m.strategies, s.Name) {
			m.strategies = append(slices.Clip(m.strategies), s.Name)
		}
	}
	m.rounds = append(m.rounds, r)
	m.reports = append(m.reports, report)
}

// idle is the gap of what several processes measured, of whom none sees who waits in
// another: the time for which nobody held the lock, on average. It is nil with several
// locks.
func idle(report *results.Report, run results.Run) *float64 {
	hold := run.Speed.Hold.MeanNS
	if report.Workload.Keys != 1 || hold == nil || run.Speed.PerSecond == 0 {
		return nil
	}
	return new(1e9/run.Speed.PerSecond - *hold)
}

// has says whether a strategy was ever measured.
func (m measured) has(strategy string) bool {
	for _, r := range m.rounds {
		if _, ok := r[strategy]; ok {
			return true
		}
	}
	return false
}

// those are the strategies that were measured and something is true of.
func (m measured) those(is func(string) bool) []string {
	var names []string
	for _, name := range m.strategies {
		if m.has(name) && is(name) {
			names = append(names, name)
		}
	}
	return names
}

// kept is how many runs the figures come from.
func (m measured) kept() int {
	n := 0
	for _, r := range m.rounds {
		n += len(r)
	}
	return n
}
