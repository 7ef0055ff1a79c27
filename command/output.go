package command

import (
	"bytes"
	"cmp"
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

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/workloads"
)

// output is one value of --output: a format, and a file or standard output as the destination of the document.
type output[T any] struct {
	format string
	given  string // as the user wrote it
	file   string // "" means standard output
	write  writer[T]
}

// writer writes a document with or without colours, wrapped to the width wide, in columns.
type writer[T any] func(w io.Writer, document T, wide int, color bool) error

// plain returns a writer that ignores the width and colours.
func plain[T any](write func(io.Writer, T) error) writer[T] {
	return func(w io.Writer, document T, _ int, _ bool) error { return write(w, document) }
}

// applicationOutputs returns the flag --output with the formats table, json and the given others.
func applicationOutputs[T document.Document](others map[string]writer[T]) *outputs[T] {
	formats := map[string]writer[T]{"table": document.WriteTable[T], "json": plain(document.WriteJSON[T])}
	maps.Copy(formats, others)
	return &outputs[T]{usual: "table", formats: formats}
}

// outputs is the flag --output: its formats and the values given.
type outputs[T any] struct {
	formats  map[string]writer[T]
	usual    string // format on standard output if the user requests no other
	byEnding bool   // a file name alone is also a value; its ending determines the format
	given    []output[T]
}

// endings maps file-name endings to formats.
var endings = map[string]string{
	".csv": "csv", ".hgrm": hgrm, ".html": "html", ".json": "json", ".md": "markdown", ".svg": "svg",
}

func (o *outputs[T]) names() []string { return slices.Sorted(maps.Keys(o.formats)) }

func (o *outputs[T]) register(set *pflag.FlagSet) {
	form := "; with =FILE to write a file"
	if o.byEnding {
		form = "; with =FILE to write a file, or FILE alone with an ending such as .html"
	}
	set.VarP(o, "output", "o", "`format`: "+strings.Join(o.names(), ", ")+form+"; repeatable (default "+o.usual+")")
}

func (o *outputs[T]) String() string { return "" }

// Type returns the word that help prints for a value.
func (o *outputs[T]) Type() string { return "format" }

// Set parses FORMAT, FORMAT=FILE or, with byEnding, FILE, and adds it to the outputs.
func (o *outputs[T]) Set(text string) error {
	format, file, named := strings.Cut(text, "=")
	write, known := o.formats[format]
	if !known && o.byEnding {
		if write, known = o.formats[endingFormat(text)]; known {
			format, file, named = endingFormat(text), text, true
		}
	}
	switch {
	case !known:
		return o.unknown(text)
	case named && file == "":
		return fmt.Errorf("%q names no file: write %s=FILE, or %s for standard output", text, format, format)
	}
	o.given = append(o.given, output[T]{format, text, place(file), write})
	return nil
}

// accepts reports whether text is a valid value of the flag.
func (o *outputs[T]) accepts(text string) bool {
	format, _, _ := strings.Cut(text, "=")
	return o.formats[format] != nil || o.byEnding && o.formats[endingFormat(text)] != nil
}

// endingFormat returns the format of a file by its ending, or "" if no format has that ending.
func endingFormat(file string) string { return endings[strings.ToLower(filepath.Ext(file))] }

// unknown returns the error for a value with an unknown format, with the value that the user probably meant.
func (o *outputs[T]) unknown(text string) error {
	format, file, _ := strings.Cut(text, "=")
	allowed := "formats: " + strings.Join(o.names(), ", ")
	if o.byEnding {
		allowed += "; endings of files: " + strings.Join(slices.Sorted(maps.Keys(endings)), ", ")
	}
	next, byEnding := "", endingFormat(text)
	switch extension := filepath.Ext(text); {
	case file == "" && o.formats[byEnding] != nil:
		next = fmt.Sprintf(", did you mean %s=%s?", byEnding, text)
	case words.Near(format, o.names()) != "":
		next = fmt.Sprintf(", did you mean %s?", words.Near(format, o.names()))
	case !o.byEnding:
	case text == "-":
		next = ": write html for a page on standard output"
	case slices.Contains([]string{".png", ".jpg", ".gif"}, extension):
		next = fmt.Sprintf(": write %s.svg, with --chart, for a chart", strings.TrimSuffix(text, extension))
	default:
		next = fmt.Sprintf(": write %s.html for a page", strings.TrimSuffix(cmp.Or(file, text), extension))
	}
	return fmt.Errorf("unknown format %q (%s)%s", format, allowed, next)
}

// all returns the given outputs. If none of them goes to standard output, it adds one that writes the default format
// there, unless quiet is set and there are outputs to files.
func (o *outputs[T]) all(quiet bool) []output[T] {
	onScreen := func(given output[T]) bool { return given.file == "" }
	if slices.ContainsFunc(o.given, onScreen) || quiet && len(o.given) > 0 {
		return o.given
	}
	return append(slices.Clone(o.given), output[T]{o.usual, o.usual, "", o.formats[o.usual]})
}

// place returns the argument as a file name. For "-" it returns "", which means standard output or input.
func place(file string) string {
	if file == "-" {
		return ""
	}
	return file
}

func (o output[T]) String() string {
	return strings.TrimSpace(o.format + " to " + cmp.Or(untrusted.Printable(o.file), "standard output"))
}

// listed returns a line of text that names each output's format and destination, such as "table to standard output".
func listed[T any](outputs []output[T]) string {
	var all []string
	for _, o := range outputs {
		all = append(all, o.String())
	}
	return strings.Join(all, ", ")
}

// check returns an error for each output that cannot be written, that would overwrite an input file, or that has the
// same destination as an earlier output.
func check[T any](outputs []output[T], read ...string) error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("--output: "+format, args...))
	}
	for i, o := range outputs {
		if o.file != "" {
			if err := writable(o.file); err != nil {
				problem("%s cannot be written: %w", o.file, err)
			}
		}
		stat, err := os.Stat(o.file)
		regular := err == nil && stat.Mode().IsRegular() // a terminal can be read and written
		if regular && slices.ContainsFunc(read, func(r string) bool { return same(o.file, r) }) {
			problem("%s would overwrite an input file: choose another name", o.given)
		}
		at := slices.IndexFunc(outputs[:i], func(other output[T]) bool { return same(o.file, other.file) })
		if at >= 0 {
			problem("%s and %s both write %s: leave one of them out, or give it another file", outputs[at].given, o.given,
				strings.TrimPrefix(output[T]{file: o.file}.String(), "to "))
		}
	}
	return errors.Join(problems...)
}

// same reports whether two paths denote the same file. An empty path is standard output.
func same(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	here, err := os.Stat(a)
	there, wrong := os.Stat(b)
	if err == nil && wrong == nil {
		return os.SameFile(here, there) && a != os.DevNull
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// inputs returns the files that a run reads: the workload file, the traces that draft names, and the files in others.
func inputs(name string, draft workloads.Draft, others ...string) []string {
	files := others
	if !slices.Contains(workloads.Presets(), name) {
		files = append(files, name)
	}
	points, _ := draft.Points() // their errors are reported elsewhere
	for _, p := range points {
		files = append(files, p.Workload.Hold.File(), p.Workload.Think.File(), p.Workload.Arrivals.File())
	}
	return slices.DeleteFunc(files, func(file string) bool { return file == "" })
}

// readBy returns the files that a run with these flags reads. It ignores invalid flags, which the run reports.
func readBy(line []string) []string {
	f, in := ofRuns(line)
	_ = in.workload(f.file, &f.workload)
	return inputs(f.file, f.workload, f.all)
}

// saveAll writes the command's document to every output, unless stop has already written the completed runs after a
// second signal.
func saveAll[T any](a *app, outputs []output[T], document T, quiet bool) error {
	return a.ended.last(func() error { return writeAll(a, outputs, document, quiet) })
}

// writeAll writes every output, even if one fails, and prints the names of the files unless quiet is set. It writes
// files first, because a write to standard output may block or fail if its reader has gone.
func writeAll[T any](a *app, outputs []output[T], document T, quiet bool) error {
	var problems []error
	byPlace := slices.SortedStableFunc(slices.Values(outputs), func(x, y output[T]) int {
		return strings.Compare(y.file, x.file)
	})
	for _, o := range byPlace {
		if err := o.save(document, a); err != nil {
			problems = append(problems, fmt.Errorf("write %s: %w", o, err))
		} else if o.file != "" && !quiet {
			a.say("wrote %s", o.file)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return &exit{ExitFailure, err}
	}
	return nil
}

// save writes the document to the output's file or to standard output.
func (o output[T]) save(document T, a *app) error {
	wide, color := a.width(), colorful(a.stdout)
	if o.file != "" {
		wide, color = withoutTerminal, false
	}
	var encoded bytes.Buffer
	if err := o.write(&encoded, document, wide, color); err != nil {
		return err
	}
	if o.file != "" {
		return replace(o.file, encoded.Bytes())
	}
	_, err := a.stdout.Write(encoded.Bytes())
	return err
}

// writable returns an error if a file cannot be written. It leaves the file unchanged. Without this check a long run
// could end before the error is found, and lose its results.
func writable(file string) error {
	stat, err := os.Stat(file)
	switch {
	case err == nil && stat.IsDir():
		return errors.New("it is a directory")
	case err == nil && !stat.Mode().IsRegular(): // the reader of a pipe would notice that it was opened and closed
		return nil
	case err == nil: // replace renames, which would also replace a write-protected file
		var present *os.File
		if present, err = os.OpenFile(file, os.O_WRONLY, 0); err == nil {
			err = present.Close()
		}
	default:
		err = nil
	}
	if err == nil {
		err = replaceable(file)
	}
	if path, is := errors.AsType[*fs.PathError](err); is {
		return path.Err // without the name of the temporary file, which the user does not know
	}
	return err
}

// replace writes a file atomically: readers see the old content or the complete new content. It keeps the file's mode
// and follows a symbolic link. It writes directly to a pipe or a device.
func replace(file string, content []byte) error {
	stat, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !stat.Mode().IsRegular():
		return os.WriteFile(file, content, 0)
	default: // without this the rename would replace the link itself
		if file, err = filepath.EvalSymlinks(file); err != nil {
			return err
		}
	}
	return overwrite(file, content)
}
