package limits

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
	"github.com/lockbench/lockbench/workloads"
)

// schema is the name and the version of the JSON format of a Document.
const schema = "lockbench/limits/1"

// Document reports the highest arrival rate that each lock sustains.
type Document struct {
	document.Head
	Question    Asked  `json:"question"`
	Locks       []Lock `json:"locks"`
	Interrupted bool   `json:"interrupted,omitempty"`
}

// Asked describes the search: its workload, and the largest allowed 99th percentile of the waits.
type Asked struct {
	Workload workloads.Spec `json:"workload"`
	LimitNS  int64          `json:"p99_ns"`
}

// Lock is the result for one lock. Rates are arrivals per second.
type Lock struct {
	Name string `json:"name"`
	// Low is the highest rate that the lock sustained, and High the lowest rate above Low that the lock did not sustain.
	// Either is nil if there was no such rate.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
	// Closed is the rate of a closed loop without think time: 1 / (mean hold + mean gap) per key.
	Closed   float64  `json:"closed_loop"`
	Headroom *float64 `json:"headroom,omitempty"` // Low ÷ the rate of the service
	Points   []Point  `json:"points"`             // in ascending order of the rate
	Unknown  string   `json:"unknown,omitempty"`  // why the search ended without a limit
	Broken   []string `json:"broken_claims,omitempty"`
}

// Point is one run of an open loop. Rate is in arrivals per second.
type Point struct {
	Rate      float64        `json:"rate"`
	PerSecond float64        `json:"acquisitions_per_second"`
	P99       *results.Bound `json:"p99"` // of the waits
	Sustained bool           `json:"sustained"`
	Invalid   string         `json:"invalid,omitempty"` // why the run cannot be trusted
}

func (p Point) String() string {
	return fmt.Sprintf("%s: wait p99 %v, %s", results.PerSecond.Format(p.Rate), p.P99, p.verdict())
}

func (p Point) verdict() string {
	switch {
	case p.Invalid != "":
		return "not trusted"
	case p.Sustained:
		return "sustained"
	}
	return "not sustained"
}

// Lay writes the document as text: a table of the locks and the runs of each lock. In HTML, it adds a chart.
func (d *Document) Lay(p *layout.Page) {
	if p.Markdown {
		p.WriteString("# Limits of locks\n\n")
	}
	limit := time.Duration(d.Question.LimitNS)
	p.Entry("setup", d.Setup())
	p.Entry("workload", strings.Join(workloads.Arguments([]workloads.Point{{Workload: d.Question.Workload}}), " "))
	p.Entry("sustained", fmt.Sprintf("rates whose wait p99 stays below %v", limit))
	p.WriteByte('\n')
	if len(d.Locks) > 0 {
		d.table(p)
		if d.Question.Workload.Rate == 0 {
			p.Remark("", "To show the headroom, give the rate of your service: --rate 60/s, or --workload with a trace of "+
				"observe")
		}
	}
	p.Picture(d.curves().Figure())
	for _, l := range d.Locks {
		p.Section(l.Name, "")
		l.points(p)
	}
	p.WriteByte('\n')
	for _, l := range d.Locks {
		if l.Unknown != "" {
			p.Fault(l.Name, l.Unknown)
		}
		for _, claim := range l.Broken {
			p.Fault(l.Name, "broke a claim: "+claim)
		}
	}
	p.Remark("", "The limit lies between the highest sustained rate and the lowest rate above it that was not sustained. "+
		"Each of them is one run, so a second search can differ by more than this interval. In a closed loop, each "+
		"client requests the lock again immediately, so the rate is 1/(mean hold + mean gap) per key.")
}

func (d *Document) table(p *layout.Page) {
	rows := [][]string{{"lock", "sustained", "not sustained", "closed loop", "headroom"}}
	for _, l := range d.Locks {
		headroom := results.NotKnown
		if l.Headroom != nil {
			headroom = fmt.Sprintf("%.1f times", *l.Headroom)
		}
		rows = append(rows, []string{
			p.Text(l.Name), rate(l.Low), rate(l.High), rate(&l.Closed), headroom,
		})
	}
	p.Table(1, "lrrrr", rows)
}

func rate(x *float64) string {
	if x == nil {
		return results.NotKnown
	}
	return results.PerSecond.Format(*x)
}

func (l Lock) points(p *layout.Page) {
	rows := [][]string{{"arrivals", "served", "wait p99", ""}}
	for _, point := range l.Points {
		rows = append(rows, []string{rate(&point.Rate), rate(&point.PerSecond), point.P99.String(), point.verdict()})
	}
	p.Table(1, "rrrl", rows)
}

// curves returns a chart that plots the 99th percentile of each lock's waits against the arrival rate.
func (d *Document) curves() html.Curves {
	c := html.Curves{
		Title: "Wait p99 against the rate", XName: "arrivals per second", YName: "99th percentile of the waits",
		Note: "A lock's line turns up where it saturates. Arrows mark lower bounds.",
	}
	for _, l := range d.Locks {
		line := html.Curve{Name: l.Name}
		for _, point := range l.Points {
			if point.P99 != nil && point.Invalid == "" {
				line.Points = append(line.Points, html.Spot{X: point.Rate, Y: float64(point.P99.NS), AtLeast: point.P99.AtLeast})
			}
		}
		c.Curves = append(c.Curves, line)
	}
	return c
}

// Unclear returns the locks whose limit was not found, because no measured rate was sustained, or because every
// measured rate was sustained.
func (d *Document) Unclear() (names []string) {
	for _, l := range d.Locks {
		if l.Low == nil || l.High == nil {
			names = append(names, l.Name)
		}
	}
	return names
}

// Unsafe returns the locks that broke a claim.
func (d *Document) Unsafe() (names []string) {
	for _, l := range d.Locks {
		if len(l.Broken) > 0 {
			names = append(names, l.Name)
		}
	}
	return names
}

// Progress returns a short description of the search for a status line.
func (q Question) Progress() string {
	return fmt.Sprintf("%s, up to %d runs each", words.Count(len(q.Strategies), "lock"), mostRuns)
}
