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

// What to do about a file in a directory that cannot be read as a report.
const (
	strict = false // return an error: without the file the result would be wrong
	odd    = true  // leave it out with a note, if others can be read
)

// jsonFiles lets a shell offer JSON files.
func jsonFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
}

// readFiles reads every report that the names, directories and globs stand for, each file once. The
// error names all files that cannot be read.
func (a *app) readFiles(patterns []string, leaveOut bool) ([]results.File, error) {
	var files []results.File
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
			report, err := readReport(name)
			if err != nil {
				wrong = append(wrong, err)
				continue
			}
			files = append(files, results.File{Name: untrusted.Printable(name), Report: report})
		}
		err = errors.Join(wrong...)
		if stat, wrong := os.Stat(pattern); err != nil && wrong == nil && stat.IsDir() && leaveOut && len(files) > before {
			for _, one := range flatten(err) {
				a.say("note: left out: %s", one)
			}
			continue
		}
		problems = append(problems, err)
	}
	return files, errors.Join(problems...)
}
