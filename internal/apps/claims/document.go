package claims

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// This file defines the document of lockbench claims and its layout. The types come first, in the order of the JSON,
// then the verdicts, and then the methods that write a page. The methods only format what judge.go has decided. A JSON
// document that was read back therefore gives the same page as the measurement.

// schema is the name and the version of the JSON format of a Document.
const schema = "lockbench/claims/1"

// Document contains the verdicts on claims that were tested on one machine.
type Document struct {
	document.Head          // Environment and Redis are those of the first run
	Title         string   `json:"title,omitempty"`
	Libraries     []string `json:"libraries,omitempty"` // modules and versions of the measured libraries
	Claims        []Result `json:"claims"`
	Interrupted   bool     `json:"interrupted,omitempty"` // the user interrupted it, so claims are missing
}

// Result is the verdict on one claim, with the runs and figures that led to it.
type Result struct {
	Name      string          `json:"name"` // see Claim.Name
	Says      Text            `json:"says"`
	Verdict   results.Verdict `json:"verdict"`
	Qualified Text            `json:"qualified,omitempty"` // Claim.Qualified, if the verdict is qualified
	Why       []string        `json:"why,omitempty"`       // reasons why it is inconclusive
	Runs      []RunResult     `json:"runs"`
	Figures   []FigureResult  `json:"figures"`
	Tests     []Text          `json:"tests,omitempty"` // tests of the same statement
	About     Text            `json:"about,omitempty"` // explains the experiment
}

// RunResult describes one run of a claim: its command, and whether the figures of the run can be trusted.
type RunResult struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Invalid bool   `json:"invalid,omitempty"` // some of its figures cannot be trusted
	Shown   *Shown `json:"shown,omitempty"`   // nil if Claim.Shows is empty
}

// Shown lists the figures of a run for the metrics in Claim.Shows.
type Shown struct {
	Runs         int `json:"runs"`     // runs of all strategies and rounds
	LeftOut      int `json:"left_out"` // runs among them that are invalid or incomplete, which no figure uses
	MachineBound int `json:"hurried"`  // runs among them whose speed the machine limited
	// Strategies lists, for each strategy, the medians of the rounds.
	Strategies []ShownStrategy `json:"strategies"`
}

// ShownStrategy lists the figures of one strategy. In a sweep, it lists the figures of one strategy at one point.
type ShownStrategy struct {
	Name    string            `json:"name"`
	Figures []document.Figure `json:"figures"`
}

// FigureResult is one expected figure of a claim, with its value in each round and the verdict on it.
type FigureResult struct {
	What   Text              `json:"what"`
	Figure string            `json:"figure"` // the expression
	Unit   results.Unit      `json:"unit"`
	Values []*results.Figure `json:"values"` // one for each round; nil if not known
	Limits
	Verdict  results.Verdict `json:"outcome"`
	Interval *Interval       `json:"interval,omitempty"` // nil without Limits.By, or if no value is known
	// Best names the best strategy of each round, if an operand uses best(). It contains "" for a round whose best
	// strategy is not known.
	Best    []string       `json:"best,omitempty"`
	Counter *CounterResult `json:"counter,omitempty"` // nil unless counter-cases were measured
}

// CounterResult is the value of a figure in the counter-case that What describes, and the verdict on it.
type CounterResult struct {
	FigureResult
	AsItMust bool `json:"as_it_must"` // the figure is on the other side of its limit, as required
}

// Interval is the median of a figure over the rounds, and the confidence interval of this median.
type Interval struct {
	Median results.Figure `json:"median"`
	Low    results.Figure `json:"low"`
	High   results.Figure `json:"high"`
	Rounds int            `json:"rounds"` // number of rounds with a known value
	// Confidence is 0 if there are too few rounds for an interval. Low and High are then the smallest and the largest
	// value.
	Confidence float64 `json:"confidence"`
}

// The verdicts on a figure:
//   - Held: every round, or the value that Limits.By selects, satisfies Limits.Is.
//   - Contradicted: every round satisfies Limits.Opposite or, if there is no Opposite, no round satisfies Limits.Is.
//   - Partly: some rounds are between these two limits, and all other rounds are on one side.
//   - Unclear: rounds contradict each other, a value is not known, or there are too few rounds for an interval.
//   - Missed: the value that Limits.By selects does not satisfy Limits.Is.
//   - Reported: the figure has no limit.
const (
	Held         results.Verdict = "held"
	Contradicted results.Verdict = "contradicted"
	Partly       results.Verdict = "partly"
	Unclear      results.Verdict = "unclear"
	Missed       results.Verdict = "missed"
	Reported     results.Verdict = "reported"
)

// The verdicts on a claim:
//   - Confirmed: all figures are held.
//   - Refuted: no figure is held or partly held.
//   - Qualified: some figures are held or partly held, but not all are held.
//   - Inconclusive: a run cannot be trusted, or a figure is unclear.
const (
	Confirmed    results.Verdict = "confirmed"
	Refuted      results.Verdict = "refuted"
	Qualified    results.Verdict = "qualified"
	Inconclusive                 = results.Inconclusive
)

// Invalid returns the names of the claims with invalid runs.
func (d *Document) Invalid() []string {
	var names []string
	for _, claim := range d.Claims {
		if slices.ContainsFunc(claim.Runs, func(r RunResult) bool { return r.Invalid }) {
			names = append(names, claim.Name)
		}
	}
	return names
}

// CounterCases returns the number of measured counter-cases, and a description of each failed counter-case.
func (d *Document) CounterCases() (measured int, failed []string) {
	for _, claim := range d.Claims {
		for _, f := range claim.Figures {
			if f.Counter == nil {
				continue
			}
			if measured++; !f.Counter.AsItMust {
				failed = append(failed, fmt.Sprintf("claim %s, %s", claim.Name, f.What))
			}
		}
	}
	return measured, failed
}

// Lay writes the document as text: each claim with its verdict, its figures with their limits, and the commands to
// repeat it. In Markdown it adds an overview.
func (d *Document) Lay(on *layout.Page) {
	p := page{on}
	if !p.Markdown {
		fmt.Fprintln(p, d.Setup())
		d.method(p)
		p.claims(d)
		fmt.Fprintf(p, "\n%s\n", d.tally())
		return
	}
	fmt.Fprintf(p, "# %s\n\n", p.Text(cmp.Or(d.Title, "Common claims about Redis locks, tested")))
	command := "lockbench claims"
	if counters, _ := d.CounterCases(); counters > 0 {
		command += " --counter"
	}
	fmt.Fprintf(p, "Written by `%s`; docs/METRICS.md defines the figures.\n\n", command)
	fmt.Fprintf(p, "- %s %s, %s\n- Machine: %s\n- Redis: %s\n", d.Tool.Name, d.Tool.Version,
		d.Started.UTC().Format("2006-01-02 15:04 MST"), p.Text(d.Environment.Describe()), p.Text(d.Redis.Describe()))
	d.method(p)
	fmt.Fprintf(p, "\n%s\n\n| # | claim | verdict |\n| ---: | --- | --- |\n", d.tally())
	for _, c := range d.Claims {
		fmt.Fprintf(p, "| [%s](#%s) | %s | %s |\n", p.Text(c.Name), anchor(c.Name), p.Text(string(c.Says)), c.Verdict)
	}
	p.claims(d)
}

func (p page) claims(d *Document) {
	for _, c := range d.Claims {
		p.heading(c)
		for _, text := range slices.Concat([]string{string(c.About), string(c.Qualified)}, c.Why) {
			if text != "" {
				p.Remark("", text)
			}
		}
		p.figures(c)
		for _, run := range c.Runs {
			p.Command(run.Command)
		}
		for _, run := range c.Runs {
			p.shown(run)
		}
		for i, test := range c.Tests {
			if i == 0 {
				fmt.Fprintf(p, "\nTests of the same claim:\n\n")
			}
			fmt.Fprintf(p, "- %s\n", layout.Code(string(test)))
		}
	}
}

func (p page) heading(c Result) {
	if p.Markdown {
		fmt.Fprintf(p, "\n<a id=\"%s\"></a>\n\n## %s. %s\n\n**%s**\n",
			anchor(c.Name), p.Text(c.Name), p.Text(string(c.Says)), c.Verdict)
		return
	}
	// All other verdicts are yellow: they neither confirm nor refute the claim.
	verdict := map[results.Verdict]string{
		Confirmed: p.Green(string(c.Verdict)), Refuted: p.Red(string(c.Verdict)),
	}[c.Verdict]
	verdict = cmp.Or(verdict, p.Yellow(string(c.Verdict)))
	// The line's prefix takes 18 columns: a two-digit number, "inconclusive" and the spaces around them.
	says := strings.Join(layout.Wrap(string(c.Says), p.Width()-18, ""), "\n    ")
	fmt.Fprintf(p, "\n%s  %s  %s\n", p.Bold(c.Name), verdict, says)
}

// anchor returns the HTML id of a claim on the page. The name of a claim without a number is the name of its file, so
// it may contain characters that a link would have to escape.
func anchor(claim string) string {
	return "claim-" + strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '-'
	}, claim)
}

// page is a layout.Page with methods that write claims, for a terminal or in Markdown.
type page struct{ *layout.Page }

// method writes how the figures of these claims were measured and judged.
func (d *Document) method(p page) {
	if len(d.Libraries) > 0 {
		p.Remark("", "Libraries: "+strings.Join(d.Libraries, ", ")+".")
	}
	// An explanation is written only if at least one figure of these claims needs it.
	for _, part := range []struct {
		explains string
		such     func(FigureResult) bool
	}{
		{howJudged, func(f FigureResult) bool { return f.By != "" }},
		{howBest, func(f FigureResult) bool { return f.Best != nil }},
		{howCountered, func(f FigureResult) bool { return f.Counter != nil }},
	} {
		if slices.ContainsFunc(d.Claims, func(c Result) bool { return slices.ContainsFunc(c.Figures, part.such) }) {
			p.Remark("", part.explains)
		}
	}
}

const (
	// howJudged quotes the constant confidence, and the ranks of the values that follow from this constant. Both must
	// change together.
	howJudged = "A figure with an interval is the median of the rounds. The interval contains the true median with " +
		"a confidence of 98 % (order statistics): with 7 rounds it extends from the smallest to the largest, " +
		"with 11 from the second-smallest to the second-largest, with 14 from the third. A limit is held if the " +
		"worse end of the interval keeps it, or the median if the limit says median; otherwise it is missed. " +
		"Rounds that cannot be trusted are left out. A figure without a limit is only reported."
	howBest = "The strategies of a run are measured one after another, and each round shuffles their order. A ratio " +
		"to the best refers to the best strategy of the same round. The last column lists these strategies, each with " +
		"its number of rounds."
	howCountered = "Each figure is measured twice: as the claim requires, and in a counter-case, in which it must be " +
		"on the other side of its limit. If it were on the same side in both, it would not depend on the subject of " +
		"the claim, and would show nothing."
)

// tally returns a sentence with the number of claims for each verdict and the number of counter-cases.
func (d *Document) tally() string {
	var parts []string
	count := map[results.Verdict]int{}
	for _, claim := range d.Claims {
		count[claim.Verdict]++
	}
	for _, v := range []results.Verdict{Confirmed, Qualified, Refuted, Inconclusive} {
		if count[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[v], v))
		}
	}
	all := []string{strings.Join(parts, ", ")}
	if counters, failed := d.CounterCases(); counters > 0 {
		cases := words.Count(counters, "counter-case")
		all = append(all, fmt.Sprintf("%s, %d failed", cases, len(failed)))
	}
	if d.Interrupted {
		all = append(all, "interrupted: claims are missing")
	}
	return strings.TrimPrefix(strings.Join(all, "; "), "; ")
}

// figures writes a table of a claim's figures, each followed by its counter-case.
func (p page) figures(c Result) {
	rows := [][]string{{"figure", "measured", "expected", "", "best (rounds)"}}
	// The last column is left out if no figure has a best strategy.
	columns := 4
	for _, f := range c.Figures {
		if rows = append(rows, f.cells()); f.Best != nil {
			columns = 5
		}
		if f.Counter == nil {
			continue
		}
		cells, verdict := f.Counter.cells(), ", counter-case failed"
		if f.Counter.AsItMust {
			verdict = ", as required"
		}
		rows = append(rows, []string{"with " + cells[0], cells[1], "", cells[3] + verdict, cells[4]})
	}
	// Descriptions come from a claim's file and names from a report, so both may contain Markdown.
	for i, row := range rows {
		for at := range row {
			row[at] = p.Text(row[at])
		}
		rows[i] = row[:columns]
	}
	p.WriteByte('\n')
	p.Grid("lrlll"[:columns], rows)
	p.WriteByte('\n')
}

// shown writes a table of the figures in run.Shown, but only in Markdown.
func (p page) shown(run RunResult) {
	s := run.Shown
	if s == nil || len(s.Strategies) == 0 || !p.Markdown { // the table is too wide for a terminal
		return
	}
	fmt.Fprintf(p, "\n%s, medians of the rounds: %s", layout.Code(run.Name), words.Count(s.Runs, "run"))
	if s.LeftOut > 0 {
		fmt.Fprintf(p, ", %d left out because they cannot be trusted", s.LeftOut)
	}
	if s.MachineBound > 0 {
		fmt.Fprintf(p, "; in %d the machine, not the lock, limited the speed", s.MachineBound)
	}
	p.WriteString("\n\n")
	head, columns := []string{""}, "l"
	for _, f := range s.Strategies[0].Figures {
		head, columns = append(head, p.Text(f.Metric)), columns+"r"
	}
	rows := [][]string{head}
	for _, one := range s.Strategies {
		row := []string{layout.Code(one.Name)}
		for _, f := range one.Figures {
			row = append(row, f.Value.Text(f.Unit))
		}
		rows = append(rows, row)
	}
	p.Grid(columns, rows)
}

// cells returns the row of a figure: its description, value, limit, verdict and best strategies.
func (f FigureResult) cells() []string {
	wanted := string(f.Is)
	switch {
	case f.Is == "":
		wanted = results.NotKnown
	case f.By == byMedian:
		wanted = "median " + wanted
	case f.Opposite != "":
		wanted += ", not " + string(f.Opposite)
	}
	return []string{string(f.What), f.valueText(), wanted, string(f.Verdict), f.winners()}
}

// winners lists the strategies that were the best in at least one round, the most frequent first.
func (f FigureResult) winners() string {
	count := map[string]int{}
	for _, name := range f.Best {
		if name != "" {
			count[name]++
		}
	}
	// Strategies with the same count are in the order of their names, so that the same figures always give the same page.
	names := slices.Sorted(maps.Keys(count))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(count[b], count[a]) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, count[name])
	}
	return strings.Join(names, ", ")
}

// valueText returns the value of a figure as text: with By, the median of the rounds and its interval; with Total, the
// sum of the rounds; without either, the median with the smallest and the largest value. It adds the number of rounds
// without a value.
func (f FigureResult) valueText() string {
	all := known(f.Values)
	if len(all) == 0 {
		return results.NotKnown
	}
	if f.Interval != nil {
		return f.between(f.Interval.Median, f.Interval.Low, f.Interval.High) + ", " + f.Interval.rounds(len(f.Values))
	}
	missing := ""
	if n := len(f.Values) - len(all); n > 0 {
		missing = fmt.Sprintf(", not known in %d of %d rounds", n, len(f.Values))
	}
	byValue := func(a, b results.Figure) int { return cmp.Compare(a.Value, b.Value) }
	// byValue ignores that a value may be only a lower bound. text marks such a value with "≥".
	low, high := slices.MinFunc(all, byValue), slices.MaxFunc(all, byValue)
	switch {
	case f.Total:
		return f.text(sum(all)) + " in total" + missing
	// A range is left out if its ends are equal after rounding.
	case f.text(low) == f.text(high):
		return f.text(low) + missing
	}
	return f.between(*results.MedianFigure(all), low, high) + missing
}

// between formats a median with its range, as "12 (10 … 15)".
func (f FigureResult) between(middle, low, high results.Figure) string {
	return fmt.Sprintf("%s (%s … %s)", f.text(middle), f.text(low), f.text(high))
}

// text formats a value in the unit of the figure, and writes whole numbers in full.
func (f FigureResult) text(v results.Figure) string {
	if v.AtLeast {
		return "≥ " + f.Unit.Signed(v.Value)
	}
	return f.Unit.Signed(v.Value)
}

// rounds returns how many of all rounds have a value, as text.
func (i Interval) rounds(all int) string {
	text := words.Count(i.Rounds, "round")
	if i.Rounds < all {
		text = fmt.Sprintf("%d of %d rounds", i.Rounds, all)
	}
	if i.Confidence == 0 {
		text += ", too few for an interval"
	}
	return text
}
