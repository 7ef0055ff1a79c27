package workloads

import (
	"errors"
	"fmt"
	"maps"
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
}

// ReadFile reads a workload file and names every error in its form, each with file and option.
// Points and Validate find what is wrong with the options together.
func ReadFile(name string, text []byte) (*File, error) {
	var options map[string]scalars
	if err := yaml.Unmarshal(text, &options); err != nil { // it names the line itself: "yaml: line 3: ..."
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(options) == 0 {
		return nil, fmt.Errorf("%s: it has no options", name)
	}
	f := &File{Origins: Origins{}}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(options)) {
		for _, problem := range apart(f.option(name, key, options[key])) {
			problems = append(problems, fmt.Errorf("%s: %s: %w", name, key, problem))
		}
	}
	return f, errors.Join(problems...)
}

// option reads one option.
func (f *File) option(file, key string, given scalars) error {
	fields := Fields()
	at := slices.IndexFunc(fields, func(o Field) bool { return o.Name == key || o.List && o.Name+"s" == key })
	switch {
	case len(given) == 0:
		return errors.New("expected a plain value, or a list of plain values")
	case key == "description":
		f.Description = strings.Join(given, " ")
		return nil
	case at < 0:
		return fmt.Errorf("it is not an option of a workload%s", words.Suggest("%q", key, names(fields)))
	}
	name := fields[at].Name
	f.Origins[name] = file + ": " + key
	return f.Draft.Give(name, given...)
}

// scalars are an option's values as they are written: one, or those of a list.
type scalars []string

// UnmarshalYAML reads the values; there are none if one of them is not plain.
func (v *scalars) UnmarshalYAML(node *yaml.Node) error {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Value == "" {
			*v = nil
			return nil
		}
		*v = append(*v, strings.TrimSpace(untrusted.Printable(n.Value)))
	}
	return nil
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
