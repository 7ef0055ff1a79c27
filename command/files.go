package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// file is a file that a command reads or writes.
type file struct {
	flag string // flag or argument that names it: --output, BASE
	name string // as the user wrote it: json=run.json
	path string // "" means standard output
}

// clashes names outputs that would overwrite a file which is read, and outputs that go to
// the same file.
func clashes(read, written []file) error {
	var problems []error
	for i, w := range written {
		if at := slices.IndexFunc(read, w.overwrites); at >= 0 {
			problems = append(problems, fmt.Errorf("%s: %s would overwrite %s, which is read (%s)",
				w.flag, w.name, read[at].path, read[at].flag))
		}
		if at := slices.IndexFunc(written[:i], w.same); at >= 0 {
			problems = append(problems, fmt.Errorf("%s: %s and %s both go to %s%s",
				w.flag, written[at].name, w.name, cmp.Or(w.path, "standard output"), w.elsewhere()))
		}
	}
	return errors.Join(problems...)
}

// elsewhere says how to write an output to a file of its own.
func (f file) elsewhere() string {
	format, _, _ := strings.Cut(f.name, "=")
	if f.flag != "--output" || format == f.path {
		return ""
	}
	return fmt.Sprintf(", write one to a file with %s=FILE", format)
}

// overwrites says whether writing f would change r. Special files, such as a terminal, can be
// read and written.
func (f file) overwrites(r file) bool {
	there, err := os.Stat(r.path)
	return err == nil && there.Mode().IsRegular() && f.same(r)
}

// same says whether two paths are of one file, as far as names say, or files that exist.
func (f file) same(other file) bool {
	here, err := os.Stat(f.path)
	there, wrong := os.Stat(other.path)
	if err == nil && wrong == nil {
		return os.SameFile(here, there) && f.path != os.DevNull
	}
	return filepath.Clean(f.path) == filepath.Clean(other.path)
}

// places returns the files of outputs.
func places[T any](outputs []output[T]) []file {
	var files []file
	for _, o := range outputs {
		files = append(files, file{"--output", o.given, o.file})
	}
	return files
}

// written returns the file of a command's only output.
func written(path string) file {
	if path == "-" {
		return file{flag: "--output", name: "-"}
	}
	return file{"--output", path, path}
}

// reads returns the files that arguments or a flag stand for; none for missing ones,
// which are reported elsewhere.
func reads(flag string, patterns ...string) []file {
	var files []file
	for _, pattern := range patterns {
		names, err := reportFiles(pattern)
		if err != nil {
			continue
		}
		for _, name := range names {
			files = append(files, file{flag, name, name})
		}
	}
	return files
}

// reads returns the files that a run's flags and its workload name.
func (f *flags) reads() []file { return inputs(f.file, f.workload, f.redis) }

// inputs returns the files that a workload and the options of Redis name.
func inputs(name string, draft workloads.Draft, redis lockbench.StoreOptions) []file {
	var files []file
	if name != "" && !slices.Contains(presets.Names(), name) {
		files = append(files, reads("--workload", name)...)
	}
	points, _ := draft.Points() // their errors are reported elsewhere
	for _, point := range points {
		files = append(files, durations(point.Workload)...)
	}
	return append(files, reads("--ca-file", redis.CAFile)...)
}

// durations returns the files from which a workload draws its hold and think times.
func durations(w workloads.Spec) []file {
	return append(reads("--hold", w.Hold.File()), reads("--think", w.Think.File())...)
}
