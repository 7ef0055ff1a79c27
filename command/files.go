package command

// This file finds and reads the reports that report and compare get as arguments.

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
)

// reportFiles returns the files that a file name, a directory or a glob denotes, sorted by name.
func reportFiles(pattern string) ([]string, error) {
	stat, err := os.Stat(pattern)
	switch {
	case err == nil && stat.IsDir(): // before the glob: a directory's name may contain * or [
		entries, err := os.ReadDir(pattern)
		if err != nil {
			return nil, err
		}
		var files []string
		for _, entry := range entries {
			if file := filepath.Join(pattern, entry.Name()); filepath.Ext(file) == ".json" {
				files = append(files, file)
			}
		}
		return found(files, filepath.Join(pattern, "*.json"))
	case err == nil:
		return []string{pattern}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	slices.Sort(files)
	return found(files, pattern)
}

// found returns files, or an error that names the pattern if no file matches it.
func found(files []string, pattern string) ([]string, error) {
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no such report: give files that lockbench wrote with -o json=FILE, a directory of "+
			"such files, or a quoted glob", pattern)
	}
	return files, nil
}

// allReports returns the files that the patterns denote. It ignores errors, which readAll reports.
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
	text, err := untrusted.ReadFile(file)
	if err != nil {
		return nil, err
	}
	report, err := results.ReadJSON(bytes.NewReader(text))
	if err != nil && written[schemaOf(text)] != nil {
		err = fmt.Errorf("%w; lockbench report %s prints this file", err, file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return report, nil
}

// The values of the parameter leaveOut determine how readAll treats a file in a directory if the file is not a report.
const (
	strict = false // return an error, because a result without the file would be wrong
	odd    = true  // leave the file out with a note if the directory has other reports
)

// jsonFiles makes the shell complete the names of JSON files.
func jsonFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// readFiles reads every report that the patterns denote, which are names, directories or globs.
func (a *app) readFiles(patterns []string, leaveOut bool) ([]results.File, error) {
	return readAll(a, patterns, leaveOut, func(name string) (results.File, error) {
		report, err := readReport(name)
		return results.File{Name: untrusted.Printable(name), Report: report}, err
	})
}

// readAll reads, once each, the files that the names, directories and globs denote. Its error names every file that
// cannot be read.
func readAll[T any](
	a *app, patterns []string, leaveOut bool, read func(name string) (T, error),
) (files []T, err error) {
	var problems []error
	seen := map[string]bool{}
	for _, pattern := range patterns {
		names, err := reportFiles(pattern)
		before, wrong := len(files), []error{err}
		for _, name := range names {
			if seen[filepath.Clean(name)] {
				continue
			}
			seen[filepath.Clean(name)] = true
			file, err := read(name)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			files = append(files, file)
		}
		err = errors.Join(wrong...)
		stat, missing := os.Stat(pattern)
		if err != nil && missing == nil && stat.IsDir() && leaveOut && len(files) > before {
			for _, one := range flatten(err) {
				a.say("note: report leaves out %s", one)
			}
			continue
		}
		problems = append(problems, err)
	}
	return files, errors.Join(problems...)
}
