package render

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// labelFigures are the numbers in a label.
var labelFigures = regexp.MustCompile(`\d+(\.\d+)?`)

// labelGroup are labels of several runs that say the same with other figures.
type labelGroup struct {
	label   string // the first
	bearers []string
	low     []string // of the figures, one by one
	high    []string
}

// labelGroups put the labels of all runs together, so that each is said once.
func labelGroups(all []results.Summary) []*labelGroup {
	var groups []*labelGroup
	known := map[string]*labelGroup{}
	for _, s := range all {
		for _, run := range s.Runs {
			for _, label := range run.Labels {
				kind := labelFigures.ReplaceAllString(label, "#")
				g := known[kind]
				if g == nil {
					numbers := labelFigures.FindAllString(label, -1)
					g = &labelGroup{label: label, low: numbers, high: slices.Clone(numbers)}
					known[kind] = g
					groups = append(groups, g)
				}
				g.add(label)
				if !slices.Contains(g.bearers, s.Title()) {
					g.bearers = append(g.bearers, s.Title())
				}
			}
		}
	}
	return groups
}

// add widens what the figures lie between.
func (g *labelGroup) add(label string) {
	value := func(text string) float64 {
		x, _ := strconv.ParseFloat(text, 64) // the pattern has seen that it can be
		return x
	}
	for i, number := range labelFigures.FindAllString(label, -1) {
		if value(number) < value(g.low[i]) {
			g.low[i] = number
		}
		if value(number) > value(g.high[i]) {
			g.high[i] = number
		}
	}
}

// text is the label, its figures as what they lie between.
func (g *labelGroup) text() string {
	next := -1
	return labelFigures.ReplaceAllStringFunc(g.label, func(string) string {
		next++
		if g.low[next] == g.high[next] {
			return g.low[next]
		}
		return g.low[next] + "–" + g.high[next]
	})
}

// labelNotes name each label once, with the strategies that bear it.
func (p *page) labelNotes(all []results.Summary) {
	for _, g := range labelGroups(all) {
		p.entry("label", "%s: %s%s", strings.Join(g.bearers, ", "), g.text(), meaning(g.label))
	}
}
