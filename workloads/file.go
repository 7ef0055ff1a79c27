package workloads

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
)

// File is a workload file in YAML. It has a line for each option, under the name of the option's flag. The line of a
// list may use the plural of that name.
//
//	description: five hundred clients of a flash sale
//	clients: [100, 500]   # a sweep
//	hold: lognormal:2ms,0.8
//	work: counter
type File struct {
	Description string
	Draft       Draft
	Origins     Origins // where each option of the file was set
}

//go:embed presets/*.yaml
var presets embed.FS

// Presets returns the names of all presets in alphabetical order. A preset is a workload for a common use of a lock,
// such as a hot lock or a flash sale.
func Presets() []string {
	files, _ := presets.ReadDir("presets") // reading an embedded directory cannot fail
	var all []string
	for _, file := range files {
		all = append(all, strings.TrimSuffix(file.Name(), ".yaml"))
	}
	return all
}

// Open reads the preset of that name or, if there is none, the file of that name. Its error lists every mistake with
// file and option.
func Open(name string) (*File, error) {
	if preset := name + ".yaml"; slices.Contains(Presets(), name) {
		text, _ := presets.ReadFile("presets/" + preset) // the file is embedded
		return ReadFile(preset, text)
	}
	text, err := untrusted.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("there is neither a file nor a preset %q (presets: %s)", name, strings.Join(Presets(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("--workload: %w", err)
	}
	return ReadFile(untrusted.Printable(name), text)
}

// Line is one option of a file, with its value or list of values as written in the file.
type Line struct {
	Place  string // file, line and option
	Key    string
	Values []string // empty if one of them is not a scalar
}

// ReadLines reads a YAML file with a line for each option and returns the lines in order. Its error names the file.
func ReadLines(name string, text []byte) ([]Line, error) {
	var options map[string]yaml.Node
	var more yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	err := documents.Decode(&options)
	if err == nil {
		if err = documents.Decode(&more); err == nil {
			return nil, fmt.Errorf("%s:%d: a second YAML document begins here, but a file must have only one", name, more.Line)
		}
	}
	if !errors.Is(err, io.EOF) { // yaml's error names the line: "yaml: line 3: ..."
		return nil, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(options) == 0 {
		return nil, fmt.Errorf("%s: the file sets no options", name)
	}
	var lines []Line
	for _, key := range slices.SortedFunc(maps.Keys(options), func(a, b string) int {
		return cmp.Compare(options[a].Line, options[b].Line)
	}) {
		value := options[key]
		lines = append(lines, Line{fmt.Sprintf("%s:%d: %s", name, value.Line, key), key, scalars(&value)})
	}
	return lines, nil
}

// ReadFile reads a workload file. Its error lists each option that is unknown or cannot be parsed, with file and line.
// Contradictions between options are found by Draft.Points and Spec.Validate.
func ReadFile(name string, text []byte) (*File, error) {
	lines, err := ReadLines(name, text)
	if err != nil {
		return nil, err
	}
	f := &File{Origins: Origins{}}
	var problems []error
	for _, line := range lines {
		for _, problem := range apart(f.option(line)) {
			problems = append(problems, fmt.Errorf("%s: %w", line.Place, problem))
		}
	}
	return f, errors.Join(problems...)
}

// ErrNotPlain is the error for an option whose value is neither a scalar nor a list of scalars.
var ErrNotPlain = errors.New("expected a plain value, or a list of plain values")

func (f *File) option(line Line) error {
	fields := Fields()
	at := slices.IndexFunc(fields, func(o Field) bool { return o.Name == line.Key || o.List && o.Name+"s" == line.Key })
	switch {
	case len(line.Values) == 0:
		return ErrNotPlain
	case line.Key == "description":
		f.Description = strings.Join(line.Values, " ")
		return nil
	case at < 0:
		return fmt.Errorf("a workload has no such option%s", words.Suggest("%q", line.Key, names(fields)))
	}
	name := fields[at].Name
	f.Origins[name] = line.Place
	return f.Draft.Give(name, line.Values...)
}

// scalars returns the value or the list of values of an option as written in the file. If any of them is empty or not a
// scalar, it returns none.
func scalars(node *yaml.Node) (values []string) {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || n.Value == "" {
			return nil
		}
		values = append(values, strings.TrimSpace(untrusted.Printable(n.Value)))
	}
	return values
}

// apart returns the errors that errors.Join combined into err, or err itself if it is a single error.
func apart(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// Origins maps each option that a variable or a file has set to the name of the variable, or to the file and line.
type Origins map[string]string

// Rename replaces the flag at the beginning of an error by the variable, or the file and line, that set the option.
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
