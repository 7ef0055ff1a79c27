package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
		if !run.Valid() || run.Failure != "" || run.Partial {
			m.left++
			continue
		}
		r[run.Strategy] = run
	}
	m.rounds = append(m.rounds, r)
	m.reports = append(m.reports, report)
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

// kept is how many runs the figures come from.
func (m measured) kept() int {
	n := 0
	for _, r := range m.rounds {
		n += len(r)
	}
	return n
}
