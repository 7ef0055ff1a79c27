package advise

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// schema is the version of the document.
const schema = "lockbench/advice/1"

// Document is advice: which lock to use for a given contention, and the figures it rests on.
type Document struct {
	document.Head
	Workload workloads.Spec `json:"workload"`
	Rounds   int            `json:"rounds"`
	For      Purpose        `json:"for"`

	Choice *Choice `json:"choice"` // nil if nothing measured may be recommended
	// Ranking has what was measured, the best first, then what may not be recommended.
	Ranking []Row             `json:"ranking"`
	Notes   []string          `json:"notes,omitempty"`    // cautions
	LeftOut []results.LeftOut `json:"left_out,omitempty"` // of the named strategies, what was not measured
	Broken  []string          `json:"broken,omitempty"`   // strategies that broke a claim
	Command string            `json:"command"`            // to measure it again

	Interrupted bool `json:"interrupted,omitempty"` // stopped by the user: there is no choice
}

// Purpose is the purpose of a lock.
type Purpose string

const (
	// Efficiency means that a lock saves work: two holders at once only waste some.
	Efficiency Purpose = "efficiency"
	// Correctness means that without the lock data breaks.
	Correctness Purpose = "correctness"
)

// Choices that are not a strategy.
const (
	NoLock         = "no lock"
	ConsensusStore = "consensus store"
)

// Choice is what to use.
type Choice struct {
	Name    string `json:"name"` // a strategy's, NoLock or ConsensusStore
	Summary string `json:"summary"`
	// Take is what to import: a package, or a library's call. It is empty if no lock is recommended.
	Take    string `json:"take,omitempty"`
	RightIf string `json:"right_if"`
	// Library is the best measured lock that is, or has the same format as, a third-party library; empty
	// if there is none, or if it is the choice itself.
	Library *Library `json:"library,omitempty"`
}

// Library is a third-party lock and the strategy that was measured for it.
type Library struct {
	Strategy string `json:"strategy"`
	strategies.Library
}

// Row is a measured strategy.
type Row struct {
	Name    string   `json:"name"`
	Claims  []string `json:"claims"`
	Verdict string   `json:"verdict"` // whether they held, in a word or two
	Figures []Figure `json:"figures"`
	Why     string   `json:"why,omitempty"` // why it is not first, or may not be recommended
}

// Figure is a metric of a strategy, compared with that of the best lock.
type Figure struct {
	document.Figure
	// Ratio says how many times as good the best lock is, over paired rounds; nil if that is not known.
	Ratio *results.Ratio `json:"ratio,omitempty"`
}

// Lay writes the document for people.
func (d *Document) Lay(p *layout.Page) {
	if p.Markdown {
		p.WriteString("# Which lock\n\n")
	} else {
		p.Entry("lockbench", words.Dotted(d.Tool.Version, d.Started.UTC().Format("2006-01-02 15:04 MST")))
	}
	p.Entry("for", string(d.For))
	p.Entry("workload", d.Workload.Describe())
	p.Entry("redis", d.Redis.Describe())
	p.Entry("machine", d.Environment.Describe())
	switch c := d.Choice; {
	case c != nil:
		p.Section("Choice", c.Name+": "+c.Summary)
		if c.Take != "" {
			p.Point("take", c.Take)
		}
		p.Point("right if", c.RightIf)
		if c.Library != nil {
			p.Point("best third-party library", c.Library.String()+", measured as "+c.Library.Strategy)
		}
	case d.Interrupted:
		p.Section("Choice", "none: it was interrupted")
	default:
		p.Section("Choice", "none: nothing that was measured may be recommended")
	}
	d.ranking(p)
	for i, note := range d.Notes {
		if i == 0 {
			p.Section("Notes", "")
		}
		p.Point("", note)
	}
	for i, left := range d.LeftOut {
		if i == 0 {
			p.Section("Left out", "")
		}
		p.Point(left.Strategy, left.Why)
	}
	p.Section("Again", "")
	p.Command(d.Command)
}

// ranking draws the measured strategies in their order, and why the others come after the first.
func (d *Document) ranking(p *layout.Page) {
	if len(d.Ranking) == 0 {
		return
	}
	rows, columns := [][]string{{"ranking", "claims"}}, "ll"
	for _, f := range d.Ranking[0].Figures {
		rows[0], columns = append(rows[0], p.Text(f.Metric)), columns+"r"
	}
	for _, c := range d.Ranking {
		row := []string{p.Text(c.Name), p.Text(c.Verdict)}
		for _, f := range c.Figures {
			row = append(row, p.Text(f.Value.Text(f.Unit)))
		}
		rows = append(rows, row)
	}
	if p.Markdown {
		p.Section("Ranking", "")
	} else {
		p.WriteByte('\n')
	}
	p.Grid(columns, rows)
	if p.Markdown {
		p.WriteByte('\n')
	}
	for _, c := range d.Ranking {
		if c.Why != "" {
			p.Point(c.Name, c.Why)
		}
	}
	how := "smallest–largest"
	if d.Rounds >= 6 {
		how = "95 % interval"
	}
	p.Remark("", fmt.Sprintf("Ratios are medians (%s) over %s in pairs; one counts from 1.1 times on, if its interval "+
		"excludes 1.", how, words.Count(d.Rounds, "round")))
}
