package advise

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
)

// figure returns a contender's metric as evidence and as text.
func (c contender) figure(name string) (findings.Evidence, string) {
	m, _ := results.FindMetric(name)
	f := c.Figure(m)
	text := f.Text(m.Unit)
	if f != nil && m.Unit == results.Number && f.Value == math.Trunc(f.Value) {
		text = fmt.Sprintf("%.0f", f.Value)
	}
	return findings.Evidence{Strategy: c.Name, Metric: name, Unit: m.Unit, Value: f}, text
}

// reasons returns the reasons for a lock, compared with the others of the field.
func (q Question) reasons(of contender, field []contender) []Sentence {
	var all []Sentence
	for _, c := range q.criteria() {
		if s, ok := c.sentence(of, field); ok {
			all = append(all, s)
		}
	}
	if _, left := choose(q.criteria(), field); len(left) > 1 {
		all = append(all, tie(of, left))
	}
	return append(all, cost(of), guarantees(of))
}

// sentence compares one contender with each of the others by a criterion.
func (c criterion) sentence(of contender, field []contender) (Sentence, bool) {
	evidence, value := of.figure(c.name)
	if evidence.Value == nil {
		return Sentence{}, false
	}
	s := Sentence{Evidence: []findings.Evidence{evidence}}
	parts := map[relation][]string{}
	for _, other := range without(field, of.Name) {
		theirs, text := other.figure(c.name)
		if theirs.Value == nil {
			continue
		}
		r, ratio := c.compare(of, other)
		entry := fmt.Sprintf("%s %s", other.Name, text)
		if ratio != nil {
			entry += ", " + ratio.String()
			if ratio.Rounds < c.rounds {
				entry += fmt.Sprintf(" in %d rounds", ratio.Rounds)
			}
		}
		theirs.Than, theirs.Ratio = of.Name, ratio
		s.Evidence = append(s.Evidence, theirs)
		parts[r] = append(parts[r], entry)
	}
	s.Text = fmt.Sprintf("%s: %s", capital(c.what), value)
	for _, group := range relations {
		if list := parts[group.relation]; len(list) > 0 {
			s.Text += "; " + group.title + " " + strings.Join(list, "; ")
		}
	}
	s.Text += "."
	return s, true
}

// tie says what decided between locks that the figures do not distinguish.
func tie(of contender, left []contender) Sentence {
	var s Sentence
	var parts []string
	left = slices.SortedStableFunc(slices.Values(left), simpler)
	for _, c := range left {
		s.Evidence = append(s.Evidence, findings.Evidence{Strategy: c.Name, Claims: c.info.Claims.List()})
		parts = append(parts, fmt.Sprintf("%s (%s; %s)", c.Name, demands(c), c.info.Claims))
	}
	s.Text = fmt.Sprintf("Figures do not tell these apart, so what asks for less goes first, then the simpler, and last what only lockbench has: %s.", strings.Join(parts, ", "))
	return s
}

// demands says what a lock needs in addition to an instance's command connections.
func demands(c contender) string {
	n := c.info.Connections
	switch {
	case c.info.Nodes == 0:
		return "no Redis"
	case c.info.Nodes > 1:
		return fmt.Sprintf("%d independent nodes", c.info.Nodes)
	case n.PerWaiter > 0:
		return words.Count(n.PerWaiter, "more connection") + " a waiter"
	case n.PerInstance > 0:
		return words.Count(n.PerInstance, "more connection") + " an instance"
	}
	return "no connection beside its commands'"
}

// cost says what a lock costs Redis.
func cost(of contender) Sentence {
	if of.info.Nodes == 0 {
		return Sentence{
			Text:     fmt.Sprintf("It lives in the process and needs no Redis: it claims %s, and across %d instance only.", of.info.Claims, of.info.MaxInstances),
			Evidence: []findings.Evidence{{Strategy: of.Name, Claims: of.info.Claims.List()}},
		}
	}
	commands, number := of.figure("commands_per_acq")
	peak, open := of.figure("connections")
	return Sentence{
		Text:     fmt.Sprintf("An acquisition is %s commands at Redis; %s connections at most were open, and it takes %s.", number, open, demands(of)),
		Evidence: []findings.Evidence{commands, peak},
	}
}

// guarantees says what a lock claims, and whether that held.
func guarantees(of contender) Sentence {
	violations, number := of.figure("violations")
	violations.Claims = of.info.Claims.List()
	return Sentence{
		Text:     fmt.Sprintf("It claims %s; violations in %d leases: %s.", of.info.Claims, leases(of.Runs), number),
		Evidence: []findings.Evidence{violations},
	}
}

// beaten says why a contender is neither the choice nor the runner-up.
func (q Question) beaten(c, by contender) string {
	for _, criterion := range q.criteria() {
		if r, ratio := criterion.compare(by, c); r == better {
			_, value := c.figure(criterion.name)
			return fmt.Sprintf("%s: %s; %s is %s times as good", criterion.what, value, by.Name, ratio)
		}
	}
	if simpler(by, c) > 0 { // a third contender beats this one
		return fmt.Sprintf("by no figure clearly worse than %s; another that was measured is clearly better", by.Name)
	}
	return fmt.Sprintf("no figure tells it clearly from %s, which asks for less or is simpler: %s", by.Name, demands(by))
}

// leases returns the number of leases in the windows of all runs.
func leases(runs []results.Run) int64 {
	var sum int64
	for _, run := range runs {
		sum += run.Speed.Acquisitions
	}
	return sum
}

func capital(text string) string {
	letters := []rune(text)
	return strings.ToUpper(string(letters[:1])) + string(letters[1:])
}
