package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// reportFiles are what a file, a directory or a glob stands for, in the order of
// their names.
func reportFiles(pattern string) ([]string, error) {
	stat, err := os.Stat(pattern)
	switch {
	case err == nil && stat.IsDir():
		pattern = filepath.Join(pattern, "*.json")
	case err == nil:
		return []string{pattern}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no such report", pattern)
	}
	slices.Sort(files)
	return files, nil
}

// readReport reads a report that lockbench wrote with -o json=FILE.
func readReport(file string) (*results.Report, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	report, err := results.ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return report, nil
}

// readSide reads every report of one side, and names all that cannot be read.
func readSide(pattern string) (compare.Side, error) {
	side := compare.Side{Name: pattern}
	files, err := reportFiles(pattern)
	if err != nil {
		return side, err
	}
	var faults []error
	for _, file := range files {
		report, err := readReport(file)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		side.Reports = append(side.Reports, compare.Report{File: file, Report: report})
	}
	return side, errors.Join(faults...)
}
