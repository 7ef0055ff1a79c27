package command

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// reportFiles returns the files that a file, a directory or a glob stands for, sorted by
// name.
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

// allReports returns the files that several of these stand for; those that are missing are reported
// elsewhere.
func allReports(patterns []string) []string {
	var all []string
	for _, pattern := range patterns {
		files, _ := reportFiles(pattern)
		all = append(all, files...)
	}
	return all
}

// readReport reads a report that lockbench wrote with -o json=FILE.
func readReport(file string) (*results.Report, error) {
	document, err := untrusted.ReadFile(file)
	if err != nil {
		return nil, err
	}
	report, err := results.ReadJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return report, nil
}

// readSide reads every report of one side. The error names all that cannot be read.
func (a *app) readSide(pattern string) (compare.Side, error) {
	side := compare.Side{Name: pattern}
	files, err := a.readAll(pattern, odd)
	for _, f := range files {
		side.Reports = append(side.Reports, compare.Report{File: f.name, Report: f.report})
	}
	return side, err
}

// What to do about a file in a directory that cannot be read as a report.
const (
	strict = false // return an error: without the file the result would be wrong
	odd    = true  // leave it out with a note, if others can be read
)

// readAll reads the reports that a file, a directory or a glob stands for. The error names
// all that cannot be read.
func (a *app) readAll(pattern string, leaveOut bool) ([]reportFile, error) {
	names, err := reportFiles(pattern)
	if err != nil {
		return nil, err
	}
	var files []reportFile
	var problems []error
	for _, name := range names {
		report, err := readReport(name)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		files = append(files, reportFile{untrusted.Printable(name), report})
	}
	if stat, err := os.Stat(pattern); err == nil && stat.IsDir() && leaveOut && len(files) > 0 {
		for _, problem := range problems {
			a.say("note: left out: %s", problem)
		}
		return files, nil
	}
	return files, errors.Join(problems...)
}

// reportFile is a report and the file it was read from.
type reportFile struct {
	name   string
	report *results.Report
}

// jsonFiles lets a shell offer JSON files.
func jsonFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// readFiles reads every report that the names and globs stand for, each file once. The
// error names all files that cannot be read.
func (a *app) readFiles(patterns []string, leaveOut bool) ([]reportFile, error) {
	var files []reportFile
	var problems []error
	for _, pattern := range patterns {
		more, err := a.readAll(pattern, leaveOut)
		problems = append(problems, err)
		for _, f := range more {
			if !slices.ContainsFunc(files,
				func(seen reportFile) bool { return filepath.Clean(seen.name) == filepath.Clean(f.name) }) {
				files = append(files, f)
			}
		}
	}
	return files, errors.Join(problems...)
}
