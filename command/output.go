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

// output is a format and a place for a document, such as the report.
type output[T any] struct {
	format string
	given  string // as the user wrote it
	file   string // "" means standard output
	write  writer[T]
}

// writer writes a document, for a page of this width and with or without colours.
type writer[T any] func(w io.Writer, document T, wide int, color bool) error

// plain makes a writer that knows no page.
func plain[T any](write func(io.Writer, T) error) writer[T] {
	return func(w io.Writer, document T, _ int, _ bool) error { return write(w, document) }
}

// applicationOutputs returns the flag --output of an application, with its other forms.
func applicationOutputs[T document.Document](others map[string]writer[T]) *outputs[T] {
	formats := map[string]writer[T]{"table": document.WriteTable[T], "json": plain(document.WriteJSON[T])}
	maps.Copy(formats, others)
	return &outputs[T]{usual: "table", formats: formats}
}

// outputs are the values of the flag --output.
type outputs[T any] struct {
	formats  map[string]writer[T]
	usual    string // the format that is printed unless the user asks for others
	byEnding bool   // a file's name alone is a value, too: its ending gives the format
	given    []output[T]
}

// endings are the endings of file names, with the formats of such files.
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

// Type is what help calls a value.
func (o *outputs[T]) Type() string { return "format" }

// Set adds an output.
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

// accepts reports whether a text is a value of the flag.
func (o *outputs[T]) accepts(text string) bool {
	format, _, _ := strings.Cut(text, "=")
	return o.formats[format] != nil || o.byEnding && o.formats[endingFormat(text)] != nil
}

// endingFormat returns the format of a file by its ending; "" if no format has that ending.
func endingFormat(file string) string { return endings[strings.ToLower(filepath.Ext(file))] }

// unknown returns the error of a value without a format.
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

// all returns the outputs. If all of them are files the screen gets the usual one too, unless it shall be quiet.
func (o *outputs[T]) all(quiet bool) []output[T] {
	onScreen := func(given output[T]) bool { return given.file == "" }
	if slices.ContainsFunc(o.given, onScreen) || quiet && len(o.given) > 0 {
		return o.given
	}
	return append(slices.Clone(o.given), output[T]{o.usual, o.usual, "", o.formats[o.usual]})
}

// place returns a file's name; - means standard output.
func place(file string) string {
	if file == "-" {
		return ""
	}
	return file
}

func (o output[T]) String() string {
	return strings.TrimSpace(o.format + " to " + cmp.Or(untrusted.Printable(o.file), "standard output"))
}

// listed returns the outputs in one line.
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
			problem("%s and %s both write %s: choose one, or another file", outputs[at].given, o.given,
				strings.TrimPrefix(output[T]{file: o.file}.String(), "to "))
		}
	}
	return errors.Join(problems...)
}

// same reports whether two paths are of one file; none is standard output.
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

// inputs returns the files that a workload names, and others.
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

// readBy returns the files that a run with these flags reads. The run reports their errors.
func readBy(line []string) []string {
	f, in := ofRuns(line)
	_ = in.workload(f.file, &f.workload)
	return inputs(f.file, f.workload, f.all)
}

// saveAll writes the command's document to every output, unless a second signal has had an earlier one written.
func saveAll[T any](a *app, outputs []output[T], document T, quiet bool) error {
	return a.ended.last(func() error { return writeAll(a, outputs, document, quiet) })
}

// writeAll writes every output, even if one has failed, and names the files that it wrote unless it shall be quiet. It
// writes files first: the reader of standard output may have gone away.
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

// save writes the document to the file or the screen.
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

// writable returns an error if a file cannot be written, and changes nothing. Otherwise a
// long run could end without a place for its results.
func writable(file string) error {
	stat, err := os.Stat(file)
	switch {
	case err == nil && stat.IsDir():
		return errors.New("it is a directory")
	case err == nil && !stat.Mode().IsRegular(): // a pipe or a device: its reader would see that it was opened
		return nil
	case err == nil: // a rename would replace a protected file, too
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
		return path.Err // the user does not know the name of the new file
	}
	return err
}

// replace writes a file as a whole: it is the old one or a complete new one, with the old one's rights and behind the
// same link. It writes into a pipe or a device.
func replace(file string, content []byte) error {
	stat, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !stat.Mode().IsRegular():
		return os.WriteFile(file, content, 0)
	default: // else the new file would replace the link
		if file, err = filepath.EvalSymlinks(file); err != nil {
			return err
		}
	}
	return overwrite(file, content)
}
