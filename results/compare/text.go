package compare

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// WriteText writes the comparison as text for a terminal that is wide columns wide. color adds ANSI colours.
func WriteText(w io.Writer, c *Comparison, wide int, color bool) error {
	p := &layout.Page{Paint: layout.Paint(color), Wide: wide}
	c.conditions(p)
	p.WriteByte('\n')
	c.table(p, func(Result) bool { return true })
	p.WriteByte('\n')
	p.Entry("verdict", c.Headline())
	for i, line := range c.remarks() {
		p.Entry([]string{"read", ""}[min(i, 1)], line)
	}
	return p.Save(w, "comparison")
}

// WriteMarkdown writes the comparison as a comment on a pull request. The verdict and the changes are visible. All
// metrics, the conditions and the remarks are folded.
func WriteMarkdown(w io.Writer, c *Comparison) error {
	p := &layout.Page{Markdown: true}
	fmt.Fprintf(p, "### lockbench: %s\n\n", p.Text(c.Headline()))
	if why := c.why(); why != "" {
		fmt.Fprintf(p, "%s\n\n", p.Text(why))
	}
	for _, broken := range c.Broken {
		fmt.Fprintf(p, "**A claimed guarantee did not hold:** %s\n\n", p.Text(broken.Text))
	}
	c.table(p, func(r Result) bool {
		return r.Verdict == Worse || r.Verdict == Better || r.Metric == c.Rules.Primary
	})
	p.WriteString("\n<details><summary>All metrics, and how they were compared</summary>\n\n")
	c.table(p, func(Result) bool { return true })
	p.WriteByte('\n')
	c.conditions(p)
	for _, line := range c.remarks() {
		p.Point("", line)
	}
	p.WriteString("\n</details>\n")
	return p.Save(w, "comparison")
}

// table draws a table with a row for each result that wanted accepts.
func (c *Comparison) table(p *layout.Page, wanted func(Result) bool) {
	confidence := fmt.Sprintf("%.4g %% interval", (1-c.Rules.Alpha)*100)
	number := map[string]string{MethodPaired: "pairs", MethodUnpaired: "sessions"}[c.Method]
	rows := [][]string{{"strategy", "metric", "verdict", "base", "head", "change", confidence, "p", "finds", number}}
	for name, r := range c.results() {
		if !wanted(r) {
			continue
		}
		row := []string{
			name, r.Label, "", r.figure(r.Base), r.figure(r.Head), percent(r.Delta), r.interval(), r.p(),
			percent(r.Detectable), r.number(c.Method),
		}
		for i := range row {
			row[i] = p.Text(row[i])
		}
		row[2] = painted(p, r.Verdict)
		rows = append(rows, row)
	}
	p.Table(2, "lll"+strings.Repeat("r", len(rows[0])-3), rows)
}

// painted returns a verdict in its colour. In Markdown, it returns the verdicts "better" and "worse" in bold.
func painted(p *layout.Page, v results.Verdict) string {
	switch text := string(v); {
	case p.Markdown && (v == Worse || v == Better):
		return "**" + text + "**"
	case v == Worse:
		return p.Red(text)
	case v == Better:
		return p.Green(text)
	case v == Undecided:
		return p.Yellow(text)
	}
	return string(v)
}

// figure formats a sample's median in its unit.
func (r Result) figure(s Sample) string {
	if s.Median == nil {
		return results.NotKnown
	}
	if s.AtLeast {
		return "≥ " + r.Unit.Signed(*s.Median)
	}
	return r.Unit.Signed(*s.Median)
}

// percent formats a change with its sign, as in +14.3 %. It formats a change of 1000 % or more as a factor, as in +12×,
// and an unknown change as "–".
func percent(change *float64) string {
	switch {
	case change == nil:
		return results.NotKnown
	case math.Abs(*change) >= 10: // a percentage of 1000 and more is hard to read
		return fmt.Sprintf("%+.0f×", *change+1)
	case math.Abs(*change) < 0.0005: // neither +0.0 nor -0.0
		return "0.0 %"
	}
	return fmt.Sprintf("%+.1f %%", *change*100)
}

// interval formats the confidence interval of the change, such as "-3.1 % to +2.0 %"; "–" if it is not known.
func (r Result) interval() string {
	if r.Low == nil || r.High == nil {
		return results.NotKnown
	}
	return percent(r.Low) + " to " + percent(r.High)
}

// p formats the adjusted p-value with three decimals; "–" if it is not known.
func (r Result) p() string {
	switch {
	case r.Adjusted == nil:
		return results.NotKnown
	case *r.Adjusted < 0.001:
		return "<0.001"
	}
	return fmt.Sprintf("%.3f", *r.Adjusted)
}

// number returns the number of pairs of a paired comparison, or else the numbers of base and head sessions, as in
// "6+6".
func (r Result) number(method string) string {
	if method == MethodPaired {
		return strconv.Itoa(r.Base.N)
	}
	return fmt.Sprintf("%d+%d", r.Base.N, r.Head.N)
}

// Glance returns one line about a pair of reports, with the primary metric of each strategy under both builds and
// without a verdict.
func Glance(base, head Side, rules Rules) string {
	primary, err := ParseMetric(rules.Primary)
	if err != nil {
		return err.Error()
	}
	var parts []string
	for _, name := range base.titles() {
		t := newTest(primary, rules, name, base.sessions(primary, name), head.sessions(primary, name))
		if t == nil {
			parts = append(parts, name+" has no comparable figures")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s against %s", name, t.figure(t.Base), t.figure(t.Head)))
	}
	return strings.Join(parts, " · ")
}

// Headline returns, in one sentence, the verdict and the results that led to it.
func (c *Comparison) Headline() string {
	text := string(c.Verdict) + ": "
	switch c.Verdict {
	case NoneFound:
		text = "no difference found; " + c.missed()
	case Undecided:
		text += c.undecided()
		if found := c.changes(Better, true); found != "" {
			text += "; better: " + found
		}
	default:
		text += c.changes(c.Verdict, true)
	}
	for _, v := range []results.Verdict{Worse, Better} {
		if found := c.changes(v, false); found != "" {
			text += fmt.Sprintf("; not counted without --all-metrics: %s: %s", v, found)
		}
	}
	return text
}

// missed returns the clause of the headline about changes that the session may have missed. Of the results on which the
// rules require a verdict, the clause names the one with the largest Detectable.
func (c *Comparison) missed() string {
	var least Result
	of := ""
	for name, r := range c.results() {
		switch {
		case !c.Rules.requiresVerdict(r.Metric) || r.Verdict == Better:
		case r.Detectable == nil:
			return fmt.Sprintf("the smallest change of %s %s that this session would have detected is not known", name, r.Label)
		case of == "" || math.Abs(*r.Detectable) > math.Abs(*least.Detectable):
			least, of = r, name
		}
	}
	return fmt.Sprintf("the smallest change this session would have detected: %s (%s %s)", size(least.Detectable), of,
		least.Label)
}

// size formats a change like percent, but without its sign.
func size(change *float64) string { return strings.TrimLeft(percent(change), "+-") }

// undecided returns the reason why the primary metric is undecided. If it is undecided for several strategies, the
// reason is that of the one that needs the most sessions.
func (c *Comparison) undecided() string {
	var worst *Result
	of := ""
	for name, r := range c.results() {
		if r.Metric == c.Rules.Primary && r.Verdict == Undecided && len(r.Warnings) > 0 &&
			(worst == nil || r.Needed > worst.Needed) {
			worst, of = &r, r.Label
			if len(c.Strategies) > 1 {
				of = name + " " + of
			}
		}
	}
	switch {
	case worst == nil:
		return "base and head have no runs in common with " + c.Rules.Primary
	case worst.Detectable == nil:
		return of + ": " + worst.Warnings[0].Text
	}
	return fmt.Sprintf("%s: it changed by %s (%s), and the smallest change this session would have detected is %s, "+
		"above the threshold of %.4g %%: %s", of, percent(worst.Delta), worst.interval(), size(worst.Detectable),
		worst.Threshold*100, c.needs(worst.Needed))
}

// needs returns a clause that proposes n pairs or sessions. If n reaches mostNeeded, it proposes longer runs or a
// quieter machine instead.
func (c *Comparison) needs(n int) string {
	number := words.Count(n, "pair")
	if c.Method == MethodUnpaired {
		number = words.Count(n, "session") + " a side"
	}
	if n >= mostNeeded {
		return fmt.Sprintf("%s are not enough: use longer runs or a quieter machine", number)
	}
	return fmt.Sprintf("about %s are enough", number)
}

// why returns what the verdict means for a CI job, with the exit code and the reasons; "" if there is nothing to add.
func (c *Comparison) why() string {
	switch c.Verdict {
	case Worse:
		var reasons []string
		ending := "."
		for name, r := range c.results() {
			if r.Verdict != Worse || !c.Rules.counts(r.Metric) {
				continue
			}
			text := fmt.Sprintf("%s %s went from %s to %s (%s, the threshold is %.4g %%)", name, r.Label, r.figure(r.Base),
				r.figure(r.Head), percent(r.Delta), r.Threshold*100)
			if c.Rules.decides(r.Metric) {
				ending = ". Counts of commands and round trips decide on their own: they hardly depend on the machine."
			}
			reasons = append(reasons, text)
		}
		return "The job fails (exit code 110): " + few(reasons) + ending
	case Undecided:
		why := "There is no verdict (exit code 112), which fails only a strict job"
		if c.Rules.Strict {
			why = "There is no verdict, so this strict job fails (exit code 112)"
		}
		if c.Scattered() {
			why += ": the times scatter too much on this machine, and no count became worse"
		}
		return why + "."
	case NoneFound, Better:
	}
	return ""
}

// changes lists the results with this verdict: if counting is true, those that count for the overall verdict, otherwise
// those that do not.
func (c *Comparison) changes(v results.Verdict, counting bool) string {
	var found []string
	for name, r := range c.results() {
		if r.Verdict == v && c.Rules.counts(r.Metric) == counting {
			found = append(found, fmt.Sprintf("%s %s %s", name, r.Label, percent(r.Delta)))
		}
	}
	return few(found)
}

// few joins at most five texts with commas, followed by the number of the remaining ones.
func few(found []string) string {
	const most = 5
	if len(found) > most {
		found = append(found[:most], fmt.Sprintf("and %d more", len(found)-most))
	}
	return strings.Join(found, ", ")
}

// conditions writes the builds, the workload, the machine and the metrics that count.
func (c *Comparison) conditions(p *layout.Page) {
	side := func(b Build) string {
		return fmt.Sprintf("%s · %s · %s", b.Name, b.Version, words.Count(b.Reports, "report"))
	}
	counts := c.Rules.Primary + " for the verdict, with --all-metrics every metric"
	if own := slices.DeleteFunc(slices.Clone(counted), func(m string) bool { return !c.Rules.decides(m) }); len(own) > 0 {
		counts = fmt.Sprintf("%s for the verdict, and the counts %s; with --all-metrics every metric", c.Rules.Primary,
			words.And(own))
	}
	if c.Rules.AllMetrics {
		counts = "every metric counts for the verdict, " + c.Rules.Primary + " is the primary one"
	}
	p.Entry("base", side(c.Base))
	p.Entry("head", side(c.Head))
	p.Entry("workload", c.Workload.Describe())
	p.Entry("redis", c.Redis)
	p.Entry("machine", c.Machine)
	p.Entry("metric", counts)
}

// remarks returns lines on the rules and the method of the comparison, and on each circumstance that casts doubt on it.
func (c *Comparison) remarks() []string {
	r := c.Rules
	lines := []string{fmt.Sprintf("a change counts if p ≤ %.4g and it is larger than %.4g %%, "+
		"or than %.4g %% for counts per acquisition", r.Alpha, r.Threshold*100, r.CountThreshold*100)}
	family := fmt.Sprintf("p adjusted by Holm's method in three families: %s, the counts that decide on their own, "+
		"all others", r.Primary)
	if c.Method == MethodPaired {
		lines = append(lines,
			"pairs: Wilcoxon's signed-rank test on log ratios; "+family)
	} else {
		lines = append(lines,
			"Mann–Whitney U test; a session is a report, with the median of its rounds; "+family)
	}
	lines = append(lines, fmt.Sprintf("finds: the smallest change for the worse that at least %.0f %% of such sessions "+
		"would have reported: z·s + max(threshold, t[1−α/2]·s + z·s), with z = z[%v] and s the upper %.0f %% limit of the "+
		"standard error; if that maximum is not the threshold, a smaller change is undecided",
		promised*100, power, known*100))
	if c.Interrupted {
		lines = append(lines, "interrupted: fewer pairs than requested")
	}
	for _, d := range c.Different {
		lines = append(lines, "different conditions: "+d.String())
	}
	for _, l := range c.LeftOut {
		lines = append(lines, "left out: "+l.Text)
	}
	for _, b := range c.Broken {
		lines = append(lines, "a claimed guarantee did not hold: "+b.Text)
	}
	lines = append(lines, c.Notes.Texts()...)
	var warnings []string
	of := map[string][]string{} // the strategies, by warning
	for _, s := range c.Strategies {
		for _, text := range s.warnings() {
			if of[text] == nil {
				warnings = append(warnings, text)
			}
			of[text] = append(of[text], s.Name)
		}
	}
	for _, text := range warnings {
		lines = append(lines, strings.Join(of[text], ", ")+text)
	}
	return lines
}

// warnings returns each distinct warning of the strategy's results once, after the names of the metrics that it
// concerns.
func (s Strategy) warnings() []string {
	var texts, lines []string
	labels := map[string][]string{}
	for _, r := range s.Results {
		for _, text := range r.Warnings.Texts() {
			if labels[text] == nil {
				texts = append(texts, text)
			}
			labels[text] = append(labels[text], r.Label)
		}
	}
	for _, text := range texts {
		of := " " + strings.Join(labels[text], ", ")
		switch others := len(s.Results) - len(labels[text]); {
		case others == 0:
			of = ""
		case others == 1 && len(s.Results) > 3:
			other := slices.IndexFunc(s.Results, func(r Result) bool { return !slices.Contains(labels[text], r.Label) })
			of = ", all metrics but " + s.Results[other].Label
		}
		lines = append(lines, of+": "+text)
	}
	return lines
}
