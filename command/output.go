package command

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// output is a format and a place for a document, such as the report.
type output[T any] struct {
	format string
	given  string // as the user wrote it
	file   string // "" means standard output
	write  writer[T]
}

// writer writes a document; a document of no bytes is not written.
type writer[T any] func(w io.Writer, document T, color bool) error

// plain makes a writer that ignores colours.
func plain[T any](write func(io.Writer, T) error) writer[T] {
	return func(w io.Writer, document T, _ bool) error { return write(w, document) }
}

// outputs are the values of the flag --output.
type outputs[T any] struct {
	formats map[string]writer[T]
	usual   string // the format that is printed unless the user asks for others
	given   []output[T]
}

func (o *outputs[T]) names() []string { return slices.Sorted(maps.Keys(o.formats)) }

func (o *outputs[T]) register(set *pflag.FlagSet) {
	set.VarP(o, "output", "o", "`format`: "+strings.Join(o.names(), ", ")+
		"; with =FILE to write a file; repeatable (default "+o.usual+")")
}

func (o *outputs[T]) String() string { return "" }

// Type is what help calls a value.
func (o *outputs[T]) Type() string { return "format" }

// Set adds an output.
func (o *outputs[T]) Set(text string) error {
	format, file, named := strings.Cut(text, "=")
	write := o.formats[format]
	switch {
	case write == nil:
		return fmt.Errorf("unknown format %q (formats: %s)", format, strings.Join(o.names(), ", "))
	case named && file == "":
		return fmt.Errorf("%q names no file", text)
	}
	o.given = append(o.given, output[T]{format, text, place(file), write})
	return nil
}

// all returns the outputs, or the usual one.
func (o *outputs[T]) all() []output[T] {
	if len(o.given) > 0 {
		return o.given
	}
	return []output[T]{{o.usual, o.usual, "", o.formats[o.usual]}}
}

// place returns a file's name; - means standard output.
func place(file string) string {
	if file == "-" {
		return ""
	}
	return file
}

// single returns the output of a command that writes one file.
func single(file, example string) ([]output[[]byte], error) {
	format, rest, named := strings.Cut(file, "=")
	switch {
	case file == "":
		return nil, fmt.Errorf("--output is needed: a file such as %s, or - for standard output", example)
	case named && slices.Contains(append(reportOutputs().names(), "html"), format):
		return nil,
			fmt.Errorf("--output is a file here and takes no format: write %s instead of %s, or ./%s for that name",
				cmp.Or(rest, "-"), file, file)
	}
	raw := func(w io.Writer, content []byte, _ bool) error { _, err := w.Write(content); return err }
	return []output[[]byte]{{"", file, place(file), raw}}, nil
}

func (o output[T]) String() string {
	return strings.TrimSpace(o.format + " to " + cmp.Or(o.file, "standard output"))
}

// listed lists outputs in a line.
func listed[T any](outputs []output[T]) string {
	var all []string
	for _, o := range outputs {
		all = append(all, o.String())
	}
	return strings.Join(all, ", ")
}

// check names outputs that cannot be written, that would overwrite a file which is read, and two
// that go to the same place.
func check[T any](outputs []output[T], read ...string) error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("--output: "+format, args...))
	}
	for i, o := range outputs {
		err := writable(o.file)
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // it may name a temporary file
		}
		if err != nil && o.file != "" {
			problem("%s cannot be written: %w", o.file, err)
		}
		stat, err := os.Stat(o.file)
		regular := err == nil && stat.Mode().IsRegular() // a terminal can be read and written
		if regular && slices.ContainsFunc(read, func(r string) bool { return same(o.file, r) }) {
			problem("%s would overwrite a file that is read", o.given)
		}
		at := slices.IndexFunc(outputs[:i], func(other output[T]) bool { return same(o.file, other.file) })
		if at >= 0 {
			problem("%s and %s both go %s", outputs[at].given, o.given, output[T]{file: o.file})
		}
	}
	return errors.Join(problems...)
}

// same says whether two paths are of one file.
func same(a, b string) bool {
	here, err := os.Stat(a)
	there, wrong := os.Stat(b)
	if err == nil && wrong == nil {
		return os.SameFile(here, there) && a != os.DevNull
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// inputs returns the files that a workload names, and others.
func inputs(name string, draft workloads.Draft, others ...string) []string {
	files := others
	if !slices.Contains(presets.Names(), name) {
		files = append(files, name)
	}
	points, _ := draft.Points() // their errors are reported elsewhere
	for _, p := range points {
		files = append(files, p.Workload.Hold.File(), p.Workload.Think.File())
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// saveAll writes every output, even if one has failed. It writes files first: the reader
// of standard output may have gone away.
func saveAll[T any](a *app, outputs []output[T], document T) error {
	var problems []error
	byPlace := slices.SortedStableFunc(slices.Values(outputs), func(x, y output[T]) int {
		return strings.Compare(y.file, x.file)
	})
	for _, o := range byPlace {
		if err := o.save(document, a.stdout, colorful(a.stdout)); err != nil {
			problems = append(problems, fmt.Errorf("write %s: %w", o, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return &exit{ExitFailure, err}
	}
	return nil
}

// save writes the document where the output says. It replaces a file completely, or
// leaves it as it was.
func (o output[T]) save(document T, stdout io.Writer, color bool) error {
	var encoded bytes.Buffer
	if err := o.write(&encoded, document, color && o.file == ""); err != nil || encoded.Len() == 0 {
		return err
	}
	if o.file != "" {
		return replace(o.file, encoded.Bytes())
	}
	_, err := stdout.Write(encoded.Bytes())
	return err
}

// writable returns an error if a file cannot be written, and changes nothing. Otherwise a
// long run could end without a place for its results.
func writable(file string) error {
	target, special, err := resolve(file)
	if err != nil || special {
		return err
	}
	// A rename onto a protected file would work, but the file must stay.
	present, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err == nil {
		err = present.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temporary, err := beside(target)
	if err != nil {
		return err
	}
	return errors.Join(temporary.Close(), os.Remove(temporary.Name()))
}

// replace writes a temporary file beside the target and renames it.
func replace(file string, content []byte) error {
	target, special, err := resolve(file)
	if err != nil {
		return err
	}
	open := func() (*os.File, error) { return beside(target) }
	if special {
		open = func() (*os.File, error) { return os.OpenFile(target, os.O_WRONLY|os.O_APPEND, 0) }
	}
	f, err := open()
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Close())
	switch {
	case special:
		return err
	case err == nil:
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// resolve follows links to the file itself. lockbench writes to special files and never
// replaces them: those that are not plain, and all in /dev and /proc, where a link may
// stand for something without a name, such as a pipe.
func resolve(file string) (target string, special bool, err error) {
	full, err := filepath.Abs(file)
	if err != nil {
		return "", false, err
	}
	stat, err := os.Stat(full)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(full); err == nil {
			return "", false, errors.New("it is a link to nothing")
		}
		return full, false, nil
	}
	switch {
	case err != nil:
		return "", false, err
	case stat.IsDir():
		return "", false, errors.New("it is a directory")
	case !stat.Mode().IsRegular(), strings.HasPrefix(full, "/dev/"), strings.HasPrefix(full, "/proc/"):
		return full, true, nil
	}
	target, err = filepath.EvalSymlinks(full)
	return target, false, err
}

// beside makes an empty file in the directory of another, with the permissions of that
// file, or of a new one if there is none.
func beside(file string) (*os.File, error) {
	rights := fs.FileMode(0o666)
	if stat, err := os.Stat(file); err == nil {
		rights = stat.Mode().Perm()
	}
	name := filepath.Join(filepath.Dir(file), fmt.Sprintf(".%s.%s.tmp", filepath.Base(file), rand.Text()))
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, rights)
}
