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

// file is one that a command reads or writes.
type file struct {
	flag string // that names it, or the argument: --output, BASE
	name string // as the user wrote it: json=run.json
	path string // "" is standard output
}

// admit lets a command's outputs pass if none of them clashes. From then on they are
// owed to the user.
func (a *app) admit(read, written []file) error {
	err := a.clashes(read, written)
	if err == nil {
		a.owed.promise(written)
	}
	return err
}

// clashes names the outputs that are read too, by whatever path, link or capitals, and
// those that go to one file.
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

// elsewhere tells how an output of a format is written to a file of its own.
func (f file) elsewhere() string {
	format, _, _ := strings.Cut(f.name, "=")
	if f.flag != "--output" || format == f.path {
		return ""
	}
	return fmt.Sprintf(", write one to a file with %s=FILE", format)
}

// overwrites says whether writing the one would change the other. What is no regular
// file, such as a terminal, can be read and written.
func (a *app) overwrites(w, r file) bool {
	there, err := os.Stat(r.path)
	if err != nil || !there.Mode().IsRegular() {
		return false
	}
	here, err := a.stat(w)
	return err == nil && os.SameFile(here, there)
}

// same says whether two outputs go to one file, which may be yet to come.
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

// stat looks at what an output goes to.
func (a *app) stat(f file) (fs.FileInfo, error) {
	if f.path != "" {
		return os.Stat(f.path)
	}
	if stdout, ok := a.stdout.(*os.File); ok {
		return stdout.Stat()
	}
	return nil, fs.ErrInvalid // a writer of the caller's
}

// isNull says whether it is the file that swallows everything.
func isNull(stat fs.FileInfo) bool {
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(stat, null)
}

// sameWhenMade says whether two files that do not exist would be one: of one name in
// one directory, or of names that differ in capitals where those do not matter.
func sameWhenMade(one, other string) bool {
	here, err := os.Stat(filepath.Dir(one))
	there, wrong := os.Stat(filepath.Dir(other))
	if err != nil || wrong != nil || !os.SameFile(here, there) {
		return false
	}
	name, like := filepath.Base(one), filepath.Base(other)
	return name == like || strings.EqualFold(name, like) && capitalsAreAlike(filepath.Dir(one))
}

// capitalsAreAlike asks the file system of a directory, with a file that is gone
// afterwards.
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

// places are the files of outputs.
func places[T any](outputs []output[T]) []file {
	var files []file
	for _, o := range outputs {
		files = append(files, file{"--output", o.given, o.file})
	}
	return files
}

// written is a command's one output.
func written(path string) file {
	if path == "-" {
		return file{flag: "--output", name: "-"}
	}
	return file{"--output", path, path}
}

// reads are the files that arguments or a flag stand for; none for what is not there,
// which is said elsewhere.
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

// reads are the files that the flags of a run name, and those that its workload does.
func (f *flags) reads() []file { return inputs(f.file, f.workload, f.redis) }

// inputs are the files from which a workload and what Redis is like are read.
func inputs(name string, draft workloads.Draft, redis lockbench.StoreOptions) []file {
	var files []file
	if name != "" && !slices.Contains(presets.Names(), name) {
		files = append(files, reads("--workload", name)...)
	}
	points, _ := draft.Points() // what is wrong with them is said elsewhere
	for _, point := range points {
		files = append(files, durations(point.Workload)...)
	}
	return append(files, reads("--ca-file", redis.CAFile)...)
}

// durations are the files from which a workload draws them.
func durations(w workloads.Spec) []file {
	return append(reads("--hold", w.Hold.File()), reads("--think", w.Think.File())...)
}
