package command

import (
	"bytes"
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
)

// output is a format and a place for a document, such as the report.
type output[T any] struct {
	format string
	given  string // as the user wrote it
	file   string // "" means standard output
	write  writer[T]
}

// errNothing means that a writer has nothing to write: the file stays as it is.
var errNothing = errors.New("there is nothing to write")

type writer[T any] func(w io.Writer, document T, color bool) error

// plain makes a writer that ignores colours.
func plain[T any](write func(io.Writer, T) error) writer[T] {
	return func(w io.Writer, document T, _ bool) error { return write(w, document) }
}

// formats are the known formats by name.
type formats[T any] struct {
	one map[string]writer[T] // to a file, or standard output
	// several write several files, whose names they derive from a file name.
	several map[string]func(file string) []output[T]
}

func (f formats[T]) names() []string {
	return slices.Sorted(func(yield func(string) bool) {
		maps.Keys(f.one)(yield)
		maps.Keys(f.several)(yield)
	})
}

// parseOutputs parses the values of --output and names every error. Without values it
// returns the usual format on standard output.
func parseOutputs[T any](given []string, usual string, known formats[T]) ([]output[T], error) {
	if len(given) == 0 {
		given = []string{usual}
	}
	var outputs []output[T]
	var problems []error
	for _, text := range given {
		format, file, named := strings.Cut(text, "=")
		write, ok := known.one[format]
		expand, more := known.several[format]
		if !ok && !more {
			problems = append(problems, fmt.Errorf("--output: unknown format %q (formats: %s)", format, strings.Join(known.names(), ", ")))
			continue
		}
		if named && file == "" {
			problems = append(problems, fmt.Errorf("--output: %q names no file", text))
			continue
		}
		if file == "-" {
			file = ""
		}
		if more && file == "" {
			problems = append(problems, fmt.Errorf("--output: %s writes several files, name them with %s=FILE", format, format))
			continue
		}
		parts := []output[T]{{format: format, file: file, write: write}}
		if more {
			parts = expand(file)
		}
		for _, part := range parts {
			part.given = text
			if err := writable(part.file); err != nil {
				problems = append(problems, fmt.Errorf("--output: %w", err))
			}
			outputs = append(outputs, part)
		}
	}
	return outputs, errors.Join(problems...)
}

func (o output[T]) String() string {
	if o.file == "" {
		return o.format + " to standard output"
	}
	return o.format + " to " + o.file
}

// save writes the document where the output says. It replaces a file completely, or
// leaves it as it was.
func (o output[T]) save(document T, stdout io.Writer, color bool) error {
	var encoded bytes.Buffer
	err := o.write(&encoded, document, color && o.file == "")
	if errors.Is(err, errNothing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	if o.file == "" {
		_, err = stdout.Write(encoded.Bytes())
	} else {
		err = replace(o.file, encoded.Bytes())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o, err)
	}
	return nil
}

// saveAll writes every output, even if one has failed. It writes files first: the reader
// of standard output may have gone away.
func saveAll[T any](a *app, outputs []output[T], document T) error {
	var problems []error
	byPlace := slices.SortedStableFunc(slices.Values(outputs), func(x, y output[T]) int { return strings.Compare(y.file, x.file) })
	for _, o := range byPlace {
		if err := o.save(document, a.stdout, colorful(a.stdout)); err != nil {
			problems = append(problems, fmt.Errorf("write %w", err))
		}
	}
	return errors.Join(problems...)
}

// writable returns an error if a file cannot be written, and changes nothing. Otherwise a
// long run could end without a place for its results.
func writable(file string) error {
	if file == "" {
		return nil
	}
	err := tryToWrite(file)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // it may name the temporary file
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", file, err)
	}
	return nil
}

func tryToWrite(file string) error {
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
	if special {
		return pour(target, content)
	}
	temporary, err := beside(target)
	if err != nil {
		return err
	}
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary.Name()))
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

// pour writes to a special file.
func pour(file string, content []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
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
