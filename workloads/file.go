package workloads

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
)

// File is a workload file: YAML with a line for each option, named as the flags are; a list may
// have its plural.
//
//	description: five hundred clients of a flash sale
//	clients: [100, 500]   # a sweep
//	hold: lognormal:2ms,0.8
//	work: counter
type File struct {
	Description string
	Draft       Draft
	Origins     Origins // of all options of the file

	name     string
	problems []error
}

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
		return nil, fmt.Errorf("%s is larger than 1 MiB: it is not a workload file", name)
	}
	f := &File{Origins: Origins{}, name: name}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s:1: it has no options", name)
	case err != nil: // it names the line itself: "yaml: line 3: ..."
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		f.problem(more.Line, "there is something after the end of the workload")
	}
	untrusted.YAML(&document)
	top := document.Content[0]
	if top.Kind != yaml.MappingNode {
		f.problem(top.Line, "expected lines of the form \"option: value\"")
	} else {
		for i := 0; i+1 < len(top.Content); i += 2 {
			f.option(top.Content[i], top.Content[i+1])
		}
	}
	return f, errors.Join(f.problems...)
}

func (f *File) problem(line int, format string, args ...any) {
	f.problems = append(f.problems, fmt.Errorf("%s:%d: %w", f.name, max(line, 1), fmt.Errorf(format, args...)))
}

// option reads one option.
func (f *File) option(key, value *yaml.Node) {
	fields := append(Fields(), Field{Name: "description"})
	at := slices.IndexFunc(fields, func(o Field) bool {
		return o.Name == key.Value || o.List && o.Name+"s" == key.Value
	})
	if at < 0 {
		f.problem(key.Line, "%q is not an option of a workload%s", key.Value,
			words.Suggest("%q", key.Value, names(fields)))
		return
	}
	name := fields[at].Name
	if f.Origins[name] != "" {
		f.problem(key.Line, "%s: it is given twice", key.Value)
		return
	}
	f.Origins[name] = fmt.Sprintf("%s:%d: %s", f.name, key.Line, key.Value)
	texts, err := scalars(value)
	if err != nil {
		f.problem(value.Line, "%s: %w", key.Value, err)
		return
	}
	if name == "description" {
		f.Description = strings.TrimSpace(strings.Join(texts, " "))
		return
	}
	if !fields[at].List || value.Kind == yaml.ScalarNode {
		f.give(name, key.Value, value.Line, texts...)
		return
	}
	for i, item := range value.Content { // each has a line of its own
		f.give(name, key.Value, item.Line, texts[i])
	}
}

// give sets an option to what stands in a line.
func (f *File) give(name, written string, line int, texts ...string) {
	for _, problem := range apart(f.Draft.Give(name, texts...)) {
		f.problem(line, "%s: %w", written, problem)
	}
}

// scalars returns a value's words: one, or those of a sequence.
func scalars(value *yaml.Node) ([]string, error) {
	nodes := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		nodes = value.Content
	}
	var all []string
	for _, node := range nodes {
		if node.Kind != yaml.ScalarNode {
			return nil, errors.New("expected a plain value, or a list of plain values")
		}
		if node.Tag != "!!null" && node.Value != "" {
			all = append(all, node.Value)
		}
	}
	if len(all) < max(1, len(nodes)) {
		return nil, errors.New("it has no value")
	}
	return all, nil
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

// Rename replaces the flag at the beginning of an error by the place where its value came from.
func (o Origins) Rename(problem error) error {
	if problem == nil {
		return nil
	}
	text := problem.Error()
	flag, found := strings.CutPrefix(text, "--")
	if end := strings.IndexAny(flag, " :"); end >= 0 {
		flag = flag[:end]
	}
	if origin, known := o[flag]; known && found {
		return errors.New(origin + text[len("--")+len(flag):])
	}
	return problem
}
