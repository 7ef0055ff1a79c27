package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// schema is the name and the version of the JSON format of a Document.
const schema = "lockbench/advice/1"

// Document is the output of lockbench advise: the recommended lock for the described contention, and the figures that
// support the recommendation.
type Document struct {
	document.Head
	Workload workloads.Spec `json:"workload"`
	Rounds   int            `json:"rounds"`
	For      Purpose        `json:"for"`
	Language string         `json:"language,omitempty"`

	Saturated *Saturation `json:"saturated,omitempty"`
	Choice    *Choice     `json:"choice"` // nil if no measured strategy qualifies, or if undecided
	Undecided *Undecided  `json:"undecided,omitempty"`
	// Ranking lists the measured strategies, the best first. Strategies that cannot be recommended come last.
	Ranking []Row             `json:"ranking"`
	Notes   results.Remarks   `json:"notes,omitempty"`    // cautions about the figures
	LeftOut []results.LeftOut `json:"left_out,omitempty"` // strategies that were not measured
	Broken  []string          `json:"broken,omitempty"`   // strategies that broke a claim
	Command string            `json:"command"`            // shell command that repeats the measurement

	Interrupted bool `json:"interrupted,omitempty"` // the user interrupted it, so there is no choice

	Brief bool `json:"-"` // on a terminal, Lay leaves out the evidence
}

// Saturation reports that the load keeps every lock busy all the time. All locks then serve clients at about the same
// rate, so this rate does not show which lock is the best.
type Saturation struct {
	MostPerSecond float64  `json:"most_per_s"`        // upper limit for the acquisitions per second of any lock
	TurnNS        int64    `json:"turn_ns,omitempty"` // time to serve each client of a closed loop once
	Ask           []string `json:"ask"`               // commands with loads that a lock can serve
}

// Purpose is the reason why a service uses a lock.
type Purpose string

const (
	// Efficiency means that the lock only saves work: two holders at the same time waste work and do no other harm.
	Efficiency Purpose = "efficiency"
	// Correctness means that two holders at the same time can damage data.
	Correctness Purpose = "correctness"
)

// Values of Choice.Name that recommend something other than a measured lock.
const (
	NoLock         = "no lock"
	ConsensusStore = "consensus store"
)

// Choice is the recommendation: a measured lock, or an alternative to a lock in Redis.
type Choice struct {
	Name    string `json:"name"` // the name of a strategy, NoLock or ConsensusStore
	Summary string `json:"summary"`
	// Take is the package or library that the program must import; "" if no lock is recommended.
	Take    string  `json:"take,omitempty"`
	RightIf string  `json:"right_if"`
	Tied    string  `json:"tied,omitempty"`   // the locks that are as good, and why this one comes first
	Beside  *Beside `json:"beside,omitempty"` // the best lock by another author, which is second in the ranking
}

// Undecided lists several locks. The rounds do not show which of them is the best.
type Undecided struct {
	Between []string `json:"between"` // the names of the locks
	Take    []string `json:"take"`    // the package or library to import for each lock
	Why     []string `json:"why"`     // the undecided comparisons, at most one per lock
	Ask     string   `json:"ask"`     // the command to decide between them
}

// Beside is the alternative to the choice: a suitable lock by another author.
type Beside struct {
	Name string `json:"name"`
	Take string `json:"take"`
	Why  string `json:"why"` // why it is not the choice
}

// Row is one measured strategy of the ranking, with its figures and the reason for its place.
type Row struct {
	Name    string   `json:"name"`
	Library string   `json:"library,omitempty"` // a library by another author that has this lock
	Claims  []string `json:"claims"`
	Verdict string   `json:"verdict"` // whether the claims held, in a word or two
	Figures []Figure `json:"figures"`
	Rounds  int      `json:"rounds"`           // number of rounds with a valid run
	Behind  string   `json:"behind,omitempty"` // the metric by which the first lock is better
	Open    string   `json:"open,omitempty"`   // the metric by which the comparison with the first lock is undecided
	Why     string   `json:"why,omitempty"`    // the comparison by the metric in Behind or Open
	Unfit   string   `json:"unfit,omitempty"`  // why it cannot be recommended
}

// Figure is a strategy's value for one metric, compared with the value of the best lock.
type Figure struct {
	document.Figure
	// Ratio is the factor by which the best lock is better. It covers the rounds in which the figures of both locks are
	// known. It is nil if there is no such round.
	Ratio *results.Ratio `json:"ratio,omitempty"`
}

// Lay writes the document as text: the recommendation, the ranking and the cautions. In Markdown, or if Brief is not
// set, it adds all figures and reasons. It never shortens a reason.
func (d *Document) Lay(p *layout.Page) {
	if p.Markdown {
		p.WriteString("# Which lock\n\n")
	}
	d.answer(p)
	d.ranking(p)
	if p.Markdown || !d.Brief {
		d.explain(p)
		return
	}
	d.close(p)
}

// answer writes the recommendation, or the reason why there is no recommendation.
func (d *Document) answer(p *layout.Page) {
	var served []float64
	for _, r := range d.Ranking {
		if f := r.figure("served_per_s").Value; f != nil {
			served = append(served, f.Value)
		}
	}
	d.Saturated.lay(p, served)
	c := d.Choice
	switch {
	case c == nil && d.Interrupted:
		p.Entry("USE", "nothing: the measurement was interrupted")
	case c == nil && d.Undecided != nil:
		u := d.Undecided
		p.Entry("UNDECIDED", words.And(u.Between)+
			": the rounds do not show which of them is the best. To decide, run:")
		p.Command(u.Ask)
		for _, why := range u.Why {
			p.Point("", why)
		}
		for i, name := range u.Between {
			p.Point("", name+": "+u.Take[i])
		}
	case c == nil:
		p.Entry("USE", "nothing: no measured strategy can be recommended")
	default:
		p.Entry("USE", c.Name+": "+cmp.Or(c.Take, c.Summary))
		if b := c.Beside; b != nil {
			p.Entry("OR", b.Name+": "+b.Take+"; "+b.Why)
		}
		if c.Tied != "" {
			p.Entry("TIED", c.Tied)
		}
		p.Entry("RIGHT IF", c.RightIf)
	}
}

// lay reports that the load saturates every lock. served contains the measured rate of each lock, and lay writes the
// range of these rates.
func (s *Saturation) lay(p *layout.Page, served []float64) {
	if s == nil {
		return
	}
	text := fmt.Sprintf("no lock serves more than %s under this load", results.PerSecond.Format(s.MostPerSecond))
	if len(served) > 1 {
		text += fmt.Sprintf(" (all %d locks serve from %s to %s)", len(served), results.PerSecond.Format(slices.Min(served)),
			results.PerSecond.Format(slices.Max(served)))
	}
	if s.TurnNS > 0 {
		text += fmt.Sprintf("; serving every client once takes %s", results.Nanoseconds.Format(float64(s.TurnNS)))
	}
	p.Entry("SATURATED", text+". Describe a load like that of your service:")
	for _, ask := range s.Ask {
		p.Command(ask)
	}
}

// LayPlan writes what Answer would measure, on which servers, and where the answer would be written.
func (q Question) LayPlan(p *layout.Page, servers, outputs string) {
	plan := q.Plan()
	_, out := q.candidates()
	q.saturation().lay(p, nil)
	p.Entry("for", words.Dotted(string(q.For), q.Language))
	p.Entry("windows", fmt.Sprintf("%v after %v of warm-up", q.Workload.Duration, q.Workload.Warmup))
	for i, left := range grouped(out) {
		p.Entry([]string{"left out", ""}[min(i, 1)], left)
	}
	p.Entry("redis", servers)
	p.Entry("output", outputs)
	p.Entry("expected", fmt.Sprintf("about %v", plan.Expected().Round(time.Second)))
	p.Entry("runs", words.Count(len(plan.Strategies)*plan.Rounds, "run"))
	p.Command(q.Command())
}

// figure returns the row's first figure whose metric is in names; an empty Figure if the row has no such figure.
func (r Row) figure(names ...string) (found Figure) {
	if at := slices.IndexFunc(r.Figures, func(f Figure) bool { return slices.Contains(names, f.Metric) }); at >= 0 {
		found = r.Figures[at]
	}
	return found
}

// why returns the reason why a lock is not the first in the ranking. first is the name of the first lock.
func (r Row) why(first string) string {
	switch f := r.figure(r.Behind); {
	case r.Unfit != "":
		return r.Unfit
	case r.Behind != "" && f.Ratio != nil:
		return fmt.Sprintf("%s is %s times as good by %s", first, f.Ratio, f.Metric)
	case r.Behind != "":
		return fmt.Sprintf("%s is better: %s", first, r.Why)
	case r.Open != "":
		return fmt.Sprintf("undecided against %s: %s", first, r.Why)
	}
	return fmt.Sprintf("no relevant figure differs from that of %s by %.0f %% or more", first, (matters-1)*100)
}

// against returns the cell of a lock in the column "lead of the first": the metric by which the first lock leads, and
// the ratio. If wide is false, it leaves out the interval of the ratio.
func (r Row) against(wide bool) string {
	short := func(metric string) string {
		by, _, _ := strings.Cut(strings.TrimPrefix(metric, "redis_"), "_")
		return by
	}
	switch f := r.figure(r.Behind); {
	case r.Unfit != "":
		return "unfit"
	case r.Behind == without:
		return "fewer clients without a turn"
	case r.Behind != "" && f.Ratio != nil:
		ratio := f.Ratio.String()
		if !wide {
			ratio, _, _ = strings.Cut(ratio, " (") // the interval
		}
		return ratio + " × " + short(r.Behind)
	case r.Behind != "":
		return short(r.Behind)
	case r.Open == without:
		return "undecided: clients without a turn"
	case r.Open != "":
		return "undecided: " + short(r.Open)
	}
	return "equal"
}

// ranking writes a table of the measured locks, the best first.
func (d *Document) ranking(p *layout.Page) {
	if len(d.Ranking) == 0 {
		return
	}
	wide := p.Markdown || p.Width() >= layout.Width*2/3
	rows := [][]string{{"", "served", "wait p90", "CPU", "lead of the first"}}
	for i, r := range d.Ranking {
		name, cells, against := p.Text(r.Name), []string{}, ""
		for _, names := range [][]string{{"served_per_s"}, {"wait_per_client_p90", "wait_p90"}, {"redis_cpu"}} {
			f := r.figure(names...)
			cells = append(cells, f.Value.Text(f.Unit))
		}
		if i > 0 || r.Unfit != "" {
			against = r.against(wide)
		}
		if !p.Markdown && layout.TextWidth(name) > p.Width()/4+3 {
			rows, name = append(rows, []string{name}), "" // a long name gets a separate line
		}
		rows = append(rows, slices.Concat([]string{name}, cells, []string{p.Text(against)}))
	}
	p.WriteByte('\n')
	p.Grid("lrrrl", rows)
}

// measured returns the number of rounds of each lock as text. If the locks have different numbers, the text is a range.
func (d *Document) measured() string {
	fewest, most := d.Rounds, d.Rounds
	for i, r := range d.Ranking {
		if r.Unfit == "" {
			if i == 0 {
				fewest, most = r.Rounds, r.Rounds
			}
			fewest, most = min(fewest, r.Rounds), max(most, r.Rounds)
		}
	}
	text := words.Count(most, "round")
	if fewest < most {
		text = fmt.Sprintf("%d to %s", fewest, text)
	}
	return text
}

// interval returns the name of the range that the tables show after the median of a ratio.
func (d *Document) interval() string {
	if d.Rounds < leastRounds {
		return "smallest–largest"
	}
	return "95 % interval"
}

// close writes all cautions and the legend of the ranking.
func (d *Document) close(p *layout.Page) {
	var unfit []results.LeftOut
	for _, r := range d.Ranking {
		if r.Unfit != "" {
			unfit = append(unfit, results.LeftOut{Strategy: r.Name, Why: results.PlainText("unfit, " + r.Unfit)})
		}
	}
	for _, note := range slices.Concat(grouped(unfit), d.Notes.Texts(), grouped(d.LeftOut)) {
		p.Point("", note)
	}
	p.Remark("", fmt.Sprintf("%s of %v; × is the median ratio over paired rounds (%s); equal means a difference below "+
		"%.0f %%. --explain prints all figures and reasons.",
		d.measured(), d.Workload.Duration, d.interval(), (matters-1)*100))
}

// explain writes the evidence: all figures and reasons, the rules by which locks are compared, the notes, the
// strategies that were left out, and the conditions of the measurement.
func (d *Document) explain(p *layout.Page) {
	list := func(title string, lines []string) {
		for i, line := range lines {
			if i == 0 {
				p.Section(title, "")
			}
			p.Point("", line)
		}
	}
	var evidence []string
	for i, r := range d.Ranking {
		about := []string{r.Name + ": " + r.Verdict, strings.Join(r.Claims, ", ")}
		for _, f := range r.Figures {
			about = append(about, f.Metric+" "+f.Value.Text(f.Unit))
		}
		about = append(about, r.Library, r.Unfit)
		if i > 0 && r.Unfit == "" {
			about = append(about, r.why(d.Ranking[0].Name))
		}
		evidence = append(evidence, words.Dotted(about...))
	}
	list("Evidence", evidence)
	p.Remark("", fmt.Sprintf("A ratio is the median (%s) over %s in pairs. A ratio of %v or more counts if its "+
		"interval excludes 1. Two locks are equal if the interval lies within 1/%v to %v, and otherwise undecided. "+
		"The server's CPU does not count below %d %% of a core, waits do not count below %v %% of the hold, and "+
		"clients without a turn do not count below %v %%. Of equal locks, the one that needs fewer nodes or connections "+
		"comes first, and then a lock that is in a published library.",
		d.interval(), d.measured(), matters, matters, matters, leastCPU, leastWait*100, leastWithout*100))
	list("Notes", d.Notes.Texts())
	list("Left out", grouped(d.LeftOut))
	p.Section("Measured", "")
	p.Entry("lockbench", words.Dotted(d.Tool.Version, d.Started.UTC().Format("2006-01-02 15:04 MST")))
	p.Entry("for", words.Dotted(string(d.For), d.Language))
	p.Entry("workload", d.Workload.Describe())
	p.Entry("redis", d.Redis.Describe())
	p.Entry("machine", d.Environment.Describe())
	p.Command(d.Command)
}

// grouped returns one line for each reason, with all strategies that have this reason.
func grouped(all []results.LeftOut) (lines []string) {
	about := map[string][]string{}
	for _, one := range all {
		about[one.Why.Text] = append(about[one.Why.Text], one.Strategy)
	}
	for _, one := range all {
		if names := about[one.Why.Text]; names != nil {
			lines = append(lines, words.And(names)+": "+one.Why.Text)
			about[one.Why.Text] = nil
		}
	}
	return lines
}
