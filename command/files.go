package command

import (
	"errors"
	"fmt"
	"io/fs"
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

// admit returns an error if a command's outputs clash; otherwise it notes them as
// outputs that the user is to get.
func (a *app) admit(read, written []file) error {
	err := a.clashes(read, written)
	if err == nil {
		a.owed.promise(written)
	}
	return err
}

// clashes names outputs that would overwrite a file which is read, also through another
// path, a link or other capitals, and outputs that go to the same file.
func (a *app) clashes(read, written []file) error {
	var problems []error
	for i, w := range written {
		if at := slices.IndexFunc(read, func(r file) bool { return a.overwrites(w, r) }); at >= 0 {
			problems = append(problems, fmt.Errorf("%s: %s would overwrite %s, which is read (%s)", w.flag, w.name, read[at].path, read[at].flag))
		}
		if at := slices.IndexFunc(written[:i], func(earlier file) bool { return a.same(earlier, w) }); at >= 0 {
			problems = append(problems, fmt.Errorf("%s: %s and %s both go to %s%s", w.flag, written[at].name, w.name, w.where(), w.elsewhere()))
		}
	}
	return errors.Join(problems...)
}

func (f file) where() string {
	if f.path == "" {
		return "standard output"
	}
	return f.path
}

// elsewhere says how to write an output to a file of its own.
func (f file) elsewhere() string {
	format, _, _ := strings.Cut(f.name, "=")
	if f.flag != "--output" || format == f.path {
		return ""
	}
	return fmt.Sprintf(", write one to a file with %s=FILE", format)
}

// overwrites says whether writing w would change r. Special files, such as a terminal,
// can be read and written.
func (a *app) overwrites(w, r file) bool {
	there, err := os.Stat(r.path)
	if err != nil || !there.Mode().IsRegular() {
		return false
	}
	here, err := a.stat(w)
	return err == nil && os.SameFile(here, there)
}

// same says whether two outputs go to one file, which may not exist yet.
func (a *app) same(one, other file) bool {
	here, err := a.stat(one)
	there, wrong := a.stat(other)
	switch {
	case err == nil && wrong == nil:
		return os.SameFile(here, there) && !isNull(here)
	case one.path == other.path:
		return true
	case errors.Is(err, fs.ErrNotExist) && errors.Is(wrong, fs.ErrNotExist):
		return sameWhenMade(one.path, other.path)
	}
	return false
}

// stat describes the file that an output goes to.
func (a *app) stat(f file) (fs.FileInfo, error) {
	if f.path != "" {
		return os.Stat(f.path)
	}
	if stdout, ok := a.stdout.(*os.File); ok {
		return stdout.Stat()
	}
	return nil, fs.ErrInvalid // a writer from Main's caller
}

func isNull(stat fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(stat, null)
}

// sameWhenMade says whether two files that do not exist would be the same: one directory
// and one name, or names that differ only in capitals if the file system ignores those.
func sameWhenMade(one, other string) bool {
	here, err := os.Stat(filepath.Dir(one))
	there, wrong := os.Stat(filepath.Dir(other))
	if err != nil || wrong != nil || !os.SameFile(here, there) {
		return false
	}
	name, like := filepath.Base(one), filepath.Base(other)
	return name == like || strings.EqualFold(name, like) && capitalsAreAlike(filepath.Dir(one))
}

// capitalsAreAlike says whether the file system of a directory ignores capitals. It makes
// a file and removes it.
func capitalsAreAlike(directory string) bool {
	probe, err := beside(filepath.Join(directory, "case"))
	if err != nil {
		return false
	}
	defer func() { _ = os.Remove(probe.Name()) }()
	here, err := probe.Stat()
	_ = probe.Close()
	there, absent := os.Stat(filepath.Join(directory, strings.ToUpper(filepath.Base(probe.Name()))))
	return err == nil && absent == nil && os.SameFile(here, there)
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
