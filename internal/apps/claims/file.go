package claims

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/suggest"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Parse reads a claim's file and returns all errors in it, each with file and line. Check tests its
// command lines.
func Parse(name string, text []byte) (Claim, error) {
	name = untrusted.Printable(name)
	p := &parser{claim: Claim{File: name, Rounds: 3}}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return p.claim, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return p.claim, fmt.Errorf("%s:1: it is to be lines of the form \"says: …\"", name)
	}
	untrusted.YAML(&document)
	p.top(document.Content[0])
	return p.claim, errors.Join(p.problems...)
}

type parser struct {
	claim    Claim
	expected bool // it has an expectation, which may be wrong
	problems []error
}

func (p *parser) problem(line int, format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf("%s:%d: %w", p.claim.File, max(line, 1), fmt.Errorf(format, args...)))
}

// lines reads a mapping; each key must be known and occur once.
func (p *parser) lines(of *yaml.Node, take map[string]func(*yaml.Node)) {
	var names []string
	for name := range take {
		names = append(names, name)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(of.Content); i += 2 {
		key, value := of.Content[i], of.Content[i+1]
		reader, known := take[key.Value]
		switch {
		case !known:
			p.problem(key.Line, "there is no %q in a claim%s", key.Value, suggest.Question("%q", key.Value, names))
		case seen[key.Value]:
			p.problem(key.Line, "%s is there twice", key.Value)
		default:
			seen[key.Value] = true
			reader(value)
		}
	}
}

// word reads a single value.
func (p *parser) word(into *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
			p.problem(n.Line, "there is to be a text")
			return
		}
		*into = strings.Join(strings.Fields(n.Value), " ")
	}
}

func (p *parser) whole(into *int) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if err := workloads.ParseWhole(n.Value, into); err != nil {
			p.problem(n.Line, "%w", err)
		} else if *into < 1 {
			p.problem(n.Line, "it is to be at least 1, not %d", *into)
		}
	}
}

func (p *parser) top(n *yaml.Node) {
	c := &p.claim
	p.lines(n, map[string]func(*yaml.Node){
		"number":       p.whole(&c.Number),
		"says":         p.word(&c.Says),
		"rounds":       p.whole(&c.Rounds),
		"runs":         p.runs(&c.Runs),
		"counter-runs": p.runs(&c.CounterRuns),
		"expect":       p.expectations,
		"qualified":    p.word(&c.Qualified),
		"tests":        p.tests,
		"about":        p.word(&c.About),
		"shows":        p.shows,
	})
	if c.Says == "" {
		p.problem(n.Line, "it does not say what is claimed (says)")
	}
	if len(c.Runs) == 0 {
		p.problem(n.Line, "it has no runs")
	}
	if !p.expected {
		p.problem(n.Line, "it expects nothing (expect)")
	}
	for _, e := range c.expect {
		p.known(c.Runs, e.Figure, e.line)
		if e.counter != nil {
			p.known(c.all(), e.counter.Figure, e.counter.line)
		}
	}
}

// known reports a figure whose run is not among these runs.
func (p *parser) known(runs []Run, figure expression, line int) {
	for _, o := range figure.operands {
		if !slices.ContainsFunc(runs, func(r Run) bool { return r.Name == o.run }) {
			p.problem(line, "%s: there is no run %q", figure.Text, o.run)
		}
	}
}

// all returns the claim's runs and those of its counter-cases.
func (c Claim) all() []Run { return slices.Concat(c.Runs, c.CounterRuns) }

// has says whether the claim has a run of that name.
func (c Claim) has(run string) bool {
	return slices.ContainsFunc(c.all(), func(r Run) bool { return r.Name == run })
}

func (p *parser) runs(into *[]Run) func(*yaml.Node) {
	return func(n *yaml.Node) { p.readRuns(n, into) }
}

func (p *parser) readRuns(n *yaml.Node, into *[]Run) {
	if n.Kind != yaml.MappingNode {
		p.problem(n.Line, "runs are lines of the form \"name: --strategy spin --clients 10\"")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		run := Run{Name: n.Content[i].Value, line: n.Content[i+1].Line}
		if p.claim.has(run.Name) {
			p.problem(n.Content[i].Line, "there are two runs %q", run.Name)
			continue
		}
		if strings.ContainsAny(run.Name, "[]. ") {
			p.problem(n.Content[i].Line, "a run's name %q is to have no brackets, dots and blanks", run.Name)
		}
		p.run(n.Content[i+1], &run)
		if strings.ContainsAny(run.Line, `'"\`) {
			p.problem(run.line, "a command line here needs no quotes")
		}
		*into = append(*into, run)
	}
}

// run reads a command line, or a mapping with the line and how to run it.
func (p *parser) run(n *yaml.Node, into *Run) {
	if n.Kind != yaml.MappingNode {
		p.word(&into.Line)(n)
		return
	}
	p.lines(n, map[string]func(*yaml.Node){"line": p.word(&into.Line), "generators": p.whole(&into.Generators)})
	if into.Line == "" {
		p.problem(n.Line, "run %s has no line", into.Name)
	}
	if into.Generators == 1 {
		p.problem(n.Line, "generators are at least 2")
	}
}

// shows reads the names of metrics.
func (p *parser) shows(n *yaml.Node) {
	for _, item := range p.items(n, "shows is a list of metrics") {
		metric, known := results.FindMetric(item.Value)
		if !known {
			p.problem(item.Line, "no metric %q", item.Value)
			continue
		}
		p.claim.Shows = append(p.claim.Shows, metric)
	}
}

// items returns a list's items; another node is an error.
func (p *parser) items(n *yaml.Node, wanted string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		p.problem(n.Line, "%s", wanted)
		return nil
	}
	return n.Content
}

func (p *parser) tests(n *yaml.Node) {
	for _, item := range p.items(n, "tests are a list") {
		var name string
		p.word(&name)(item)
		p.claim.Tests = append(p.claim.Tests, name)
	}
}

func (p *parser) expectations(n *yaml.Node) {
	for _, item := range p.items(n, "expect is a list of figures") {
		p.expected = true
		if item.Kind != yaml.MappingNode {
			p.problem(item.Line, "an expectation is lines of what, figure, is and opposite")
			continue
		}
		p.expectation(item)
	}
}

func (p *parser) expectation(n *yaml.Node) {
	e := expectation{line: n.Line}
	var figure, is, opposite, total, by string
	p.lines(n, map[string]func(*yaml.Node){
		"what": p.word(&e.What), "figure": p.word(&figure), "is": p.word(&is), "opposite": p.word(&opposite), "total": p.word(&total),
		"by": p.word(&by), "counter": p.counter(&e),
	})
	if e.What == "" || figure == "" || is == "" && by == "" {
		p.problem(n.Line, "an expectation needs what, figure and is")
		return
	}
	e.Total = total == "true"
	if total != "" && total != "true" && total != "false" {
		p.problem(n.Line, "total is true or false, not %q", total)
	}
	var err error
	if e.Figure, err = parseExpression(figure); err != nil {
		p.problem(n.Line, "figure: %w", err)
		return
	}
	if is != "" {
		if e.Is, err = results.ParseLimit(is, e.Figure.unit); err != nil {
			p.problem(n.Line, "is: %w", err)
		}
	}
	if opposite != "" {
		limit, err := results.ParseLimit(opposite, e.Figure.unit)
		if err != nil {
			p.problem(n.Line, "opposite: %w", err)
		}
		e.Opposite = &limit
	}
	if e.By = by; by != "" {
		if err := e.wrongBy(); err != nil {
			p.problem(n.Line, "%w", err)
		}
	}
	for _, err := range []error{e.unreachable(), e.wrongCounter()} {
		if err != nil {
			p.problem(n.Line, "%w", err)
		}
	}
	p.claim.expect = append(p.claim.expect, e)
}
