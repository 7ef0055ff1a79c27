package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// unknown stands for an unknown figure.
const unknown = "–"

// figure writes a sample's median in its unit.
func (r Result) figure(s Sample) string {
	if s.Median == nil {
		return unknown
	}
	return write(r.Unit, *s.Median, s.AtLeast)
}

// Write writes a value of the metric in its unit.
func Write(m Metric, v float64) string { return write(m.Unit, v, false) }

func write(unit results.Unit, v float64, atLeast bool) string {
	switch unit {
	case results.Nanoseconds:
		return (&results.Bound{NS: int64(math.Round(v)), AtLeast: atLeast}).String()
	case results.Percent:
		return results.Plain(v) + " %"
	case results.PerSecond:
		return results.Plain(v) + "/s"
	case results.Bytes:
		return results.Plain(v) + " B"
	}
	return results.Plain(v)
}

// percent writes a change with its sign.
func percent(change *float64) string {
	if change == nil {
		return unknown
	}
	if math.Abs(*change) >= 10 { // no percentage for a change such as 0 → 3
		return fmt.Sprintf("%+.0f×", *change+1)
	}
	if math.Abs(*change) < 0.0005 { // neither +0.0 nor -0.0
		return "0.0 %"
	}
	return fmt.Sprintf("%+.1f %%", *change*100)
}

// interval writes the interval of the change.
func (r Result) interval() string {
	if r.Low == nil || r.High == nil {
		return unknown
	}
	return percent(r.Low) + " to " + percent(r.High)
}

// p writes a probability.
func (r Result) p() string {
	switch {
	case r.Adjusted == nil:
		return unknown
	case *r.Adjusted < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", *r.Adjusted)
}

// number writes the number of pairs, or of the sessions of base and head.
func (r Result) number(method string) string {
	if method == MethodPaired {
		return strconv.Itoa(r.Base.N)
	}
	return fmt.Sprintf("%d+%d", r.Base.N, r.Head.N)
}

// confidence returns the confidence of the intervals: "95 %".
func (c *Comparison) confidence() string { return results.Plain((1-c.Rules.Alpha)*100) + " %" }

// Headline returns the result in one sentence.
func (c *Comparison) Headline() string {
	switch c.Verdict {
	case Worse:
		return "worse: " + c.changes(Worse, true) + c.beside()
	case Better:
		return "better: " + c.changes(Better, true) + c.beside()
	case Same:
		return "same, as far as these runs can tell" + c.beside()
	}
	return "undecided: " + c.undecided() + c.beside()
}

// beside names the changes that do not count for the verdict.
func (c *Comparison) beside() string {
	text := ""
	for _, v := range []Verdict{Worse, Better} {
		if found := c.changes(v, false); found != "" {
			text += fmt.Sprintf("; without --strict this does not count: %s: %s", v, found)
		}
	}
	return text
}

// undecided says why the primary metric is undecided, and how many sessions or pairs it needs.
func (c *Comparison) undecided() string {
	unit, side := "pair", ""
	if c.Method == MethodUnpaired {
		unit, side = "session", " a side"
	}
	var primary []Result
	needed, others := 0, 0
	for _, s := range c.Strategies {
		for _, r := range s.Results {
			if r.Metric == c.Rules.Primary {
				primary = append(primary, r)
				needed = max(needed, r.Needed)
			} else {
				others = max(others, r.Needed)
			}
		}
	}
	switch {
	case len(primary) == 0:
		return "no run of both sides has " + c.Rules.Primary
	case slices.ContainsFunc(primary, func(r Result) bool { return slices.Contains(r.Warnings, notInTurns) }):
		return primary[0].Label + ": " + notInTurns
	case needed == 0:
		return fmt.Sprintf("lower bounds of %s leave it open", primary[0].Label)
	}
	text := fmt.Sprintf("%s %ss; %s%s are needed by %s", primary[0].number(c.Method), unit, words.Count(needed, unit), side, primary[0].Label)
	if others > needed {
		text += fmt.Sprintf(", %d by all metrics", others)
	}
	return text
}

// changes lists the results of a verdict that count, or those that do not, at most five.
func (c *Comparison) changes(v Verdict, counting bool) string {
	var found []string
	for _, s := range c.Strategies {
		for _, r := range s.Results {
			if r.Verdict == v && c.Rules.counts(r.Metric) == counting {
				found = append(found, fmt.Sprintf("%s %s %s", s.Name, r.Label, percent(r.Delta)))
			}
		}
	}
	const most = 5
	if len(found) > most {
		found = append(found[:most], fmt.Sprintf("and %d more", len(found)-most))
	}
	return strings.Join(found, ", ")
}

// conditions returns lines on what was compared, each with its label.
func (c *Comparison) conditions() [][2]string {
	side := func(b Build) string {
		return fmt.Sprintf("%s · %s · %s", b.Name, b.Version, words.Count(b.Reports, "report"))
	}
	counts := c.Rules.Primary + " counts for the verdict, with --strict every metric"
	if c.Rules.Strict {
		counts = "every metric counts for the verdict, " + c.Rules.Primary + " is the primary one"
	}
	return [][2]string{
		{"base", side(c.Base)}, {"head", side(c.Head)}, {"workload", c.Workload.Describe()}, {"redis", c.Redis}, {"machine", c.Machine}, {"metric", counts},
	}
}

// remarks says how the verdicts were obtained, and what casts doubt on them.
func (c *Comparison) remarks() []string {
	r := c.Rules
	lines := []string{fmt.Sprintf("a change counts if p ≤ %s and it is beyond %s %%, of counts per acquisition %s %%",
		results.Plain(r.Alpha), results.Plain(r.Threshold*100), results.Plain(r.CountThreshold*100))}
	if c.Method == MethodPaired {
		lines = append(lines, fmt.Sprintf("pairs: Wilcoxon's signed-rank test on log ratios; p after Holm, %s by itself and all others as one family; "+
			"finds: the change for the worse that these pairs would have shown in %.0f %% of the cases", r.Primary, power*100))
	} else {
		lines = append(lines, fmt.Sprintf("Mann–Whitney U test; a session is a report, with the median of its rounds; p after Holm, %s by itself and all others as one family", r.Primary))
	}
	if c.Interrupted {
		lines = append(lines, "interrupted: fewer pairs than were asked for")
	}
	for _, d := range c.Different {
		lines = append(lines, "not the same: "+d.String())
	}
	for _, l := range c.LeftOut {
		lines = append(lines, "left out: "+l)
	}
	for _, b := range c.Broken {
		lines = append(lines, "a claimed guarantee did not hold: "+b)
	}
	lines = append(lines, c.Notes...)
	for _, s := range c.Strategies {
		lines = append(lines, s.warnings()...)
	}
	return lines
}

// warnings returns the warnings of the strategy's results, each once with its metrics.
func (s Strategy) warnings() []string {
	var texts []string
	labels := map[string][]string{}
	for _, r := range s.Results {
		for _, text := range r.Warnings {
			if labels[text] == nil {
				texts = append(texts, text)
			}
			labels[text] = append(labels[text], r.Label)
		}
	}
	var lines []string
	for _, text := range texts {
		of := " " + strings.Join(labels[text], ", ")
		if len(labels[text]) == len(s.Results) {
			of = ""
		}
		lines = append(lines, s.Name+of+": "+text)
	}
	return lines
}
