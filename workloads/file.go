package workloads

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/suggest"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// File is a workload file: YAML with a line for each option, named as the flags
// are.
//
//	description: five hundred clients of a flash sale
//	clients: [100, 500]   # a sweep
//	hold: lognormal:2ms,0.8
//	work: counter
type File struct {
	Name        string // for messages
	Description string
	Options     []Option // in the order of the file
}

// Option is one line of a File.
type Option struct {
	Name    string
	Values  []string
	Line    int
	Written string // its name in the file, which may be the plural
}

// Place returns where the option is, for messages.
func (f *File) Place(o Option) string { return fmt.Sprintf("%s:%d: %s", f.Name, o.Line, o.Written) }

// maxFile is more than any workload needs.
const maxFile = 1 << 20

// ReadFile reads a workload file and names every error in its form, each with file and line.
// Points and Validate find what is wrong with the options together.
func ReadFile(name string, from io.Reader) (*File, error) {
	data, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than 1 MiB: that is no workload file", name)
	}
	reader := fileReader{file: &File{Name: name}, fields: Fields()}
	reader.read(data)
	if err := errors.Join(reader.problems...); err != nil {
		return nil, err
	}
	return reader.file, nil
}

type fileReader struct {
	file     *File
	fields   []Field
	problems []error
}

func (r *fileReader) problem(line int, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d: %w", r.file.Name, max(line, 1), fmt.Errorf(format, args...)))
}

func (r *fileReader) read(data []byte) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		r.problem(1, "it has no options")
		return
	case err != nil:
		// It names the line itself: "yaml: line 3: ...".
		r.problems = append(r.problems, fmt.Errorf("%s: %s", r.file.Name, strings.TrimPrefix(err.Error(), "yaml: ")))
		return
	}
	var more yaml.Node
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		r.problem(more.Line, "there is something after the end of the workload")
	}
	untrusted.YAML(&document)
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		r.problem(top.Line, "it is to be lines of the form \"option: value\"")
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		name := key.Value
		if before, twice := seen[name]; twice {
			r.problem(key.Line, "%s: it is in line %d already", key.Value, before)
			continue
		}
		seen[name] = key.Line
		r.option(key, value)
	}
}

func (r *fileReader) option(key, value *yaml.Node) {
	if key.Kind != yaml.ScalarNode {
		r.problem(key.Line, "an option's name is to be a word")
		return
	}
	name := key.Value
	at := slices.IndexFunc(r.fields, func(f Field) bool { return name != "" && (f.Name == name || f.Plural == name) })
	if name != "description" && at < 0 {
		r.problem(key.Line, "%q is no option of a workload%s", name, r.suggestion(name))
		return
	}
	texts, err := scalars(value)
	if err != nil {
		r.problem(value.Line, "%s: %w", name, err)
		return
	}
	if name == "description" {
		r.file.Description = strings.TrimSpace(strings.Join(texts, " "))
		return
	}
	field := r.fields[at]
	sound := true
	if field.List && value.Kind == yaml.SequenceNode { // each entry has a line of its own
		for i, item := range value.Content {
			sound = r.try(field, name, item.Line, texts[i]) && sound
		}
	} else {
		sound = r.try(field, name, value.Line, texts...)
	}
	if sound {
		r.file.Options = append(r.file.Options, Option{field.Name, texts, key.Line, name})
	}
}

// try says whether an option can have these values.
func (r *fileReader) try(field Field, name string, line int, texts ...string) bool {
	err := new(Draft).Give(field.Name, texts...)
	for _, problem := range apart(err) {
		r.problem(line, "%s: %w", name, problem)
	}
	return err == nil
}

// scalars returns a value's words: one, or those of a sequence.
func scalars(value *yaml.Node) ([]string, error) {
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag != "!!null" && value.Value != "":
		return []string{value.Value}, nil
	case value.Kind == yaml.SequenceNode && len(value.Content) > 0:
		var all []string
		for _, item := range value.Content {
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" || item.Value == "" {
				return nil, errors.New("a list's entries are to be plain values")
			}
			all = append(all, item.Value)
		}
		return all, nil
	case value.Kind == yaml.ScalarNode || value.Kind == yaml.SequenceNode:
		return nil, errors.New("it has no value")
	}
	return nil, errors.New("it is to have a plain value, or a list of them")
}

// suggestion names the option that was probably meant.
func (r *fileReader) suggestion(name string) string {
	var names []string
	for _, f := range r.fields {
		names = append(names, f.Name)
	}
	return suggest.Question("%q", name, names)
}

// Points returns the workloads of the file. A fault names file and line if one option is to
// blame.
func (f *File) Points() ([]Point, error) {
	var draft Draft
	origins := Origins{}
	for _, o := range f.Options {
		if err := draft.Give(o.Name, o.Values...); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Place(o), err)
		}
		origins[o.Name] = f.Place(o)
	}
	points, err := draft.Points()
	problems := []error{origins.Rename(err)}
	for i := range points {
		for _, problem := range apart(points[i].Workload.Validate()) {
			problems = append(problems, origins.Rename(problem))
		}
	}
	return points, errors.Join(problems...)
}

// apart splits a joined error.
func apart(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Origins says where options got their values, other than from flags.
type Origins map[string]string

// Rename replaces the flag at the beginning of a fault by the place where its value came
// from.
func (o Origins) Rename(problem error) error {
	if problem == nil {
		return nil
	}
	text := problem.Error()
	flag, rest := text, ""
	if end := strings.IndexAny(text, " :"); end >= 0 {
		flag, rest = text[:end], text[end:]
	}
	if origin, known := o[strings.TrimPrefix(flag, "--")]; known && strings.HasPrefix(flag, "--") {
		return errors.New(origin + rest)
	}
	return problem
}
