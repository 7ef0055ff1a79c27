package html

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// synthetic returns a report of the strategies names at each number of clients, made from recorded runs. Each strategy
// is slower and needs more commands than the one before it.
func synthetic(names []string, clients []int, rounds int) *results.Report {
	file, err := os.Open("../testdata/recorded.json")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	r, err := results.ReadJSON(file)
	if err != nil {
		panic(err)
	}
	recorded := r.Runs
	r.Strategies, r.Runs, r.Baselines, r.Rounds = nil, nil, nil, rounds
	for _, n := range clients {
		w := workloads.Default()
		w.Clients, w.Instances, w.Hold = n, min(10, n), workloads.Fixed(time.Millisecond)
		r.Points = append(r.Points, workloads.Point{Label: fmt.Sprintf("clients=%d", n), Workload: w})
	}
	r.Workload = r.Points[0].Workload
	for rank, name := range names {
		r.Strategies = append(r.Strategies, results.Strategy{Name: name, Claims: []string{"exclusion"}, Capacity: 1})
		for round := range rounds {
			for _, p := range r.Points {
				run := recorded[(rank+round)%len(recorded)]
				run.Strategy, run.Point, run.Round = name, p.Label, round+1
				run.Waiting.PerClient = run.Waiting.PerAcquisition
				run.Speed.PerSecond = 900 / (1 + 0.1*float64(rank)) * (1 + 0.01*float64(round))
				run.Server.Window = &results.ServerDelta{
					Seconds: 5, Acquisitions: 1000, Calls: new(int64(4000 + 20*rank*p.Workload.Clients)),
					RoundTrips: new(int64(3000)), CPU: new(0.1 * float64(rank+1)),
				}
				run.Timeline = nil
				for second := range int64(5) {
					wait := &results.Bound{NS: (1 + second) * 1e6}
					run.Timeline = append(run.Timeline, results.Slice{
						At: float64(second), Seconds: 1, Acquisitions: 800 + second, Waiting: p.Workload.Clients - 1,
						WaitP50: wait, WaitP99: wait, WaitMax: wait,
					})
				}
				r.Runs = append(r.Runs, run)
			}
		}
	}
	if len(clients) == 1 {
		r.Points = nil
		for i := range r.Runs {
			r.Runs[i].Point = ""
		}
	}
	return r
}

// ten lists the names of ten strategies, some as long as the names of variants.
var ten = []string{
	"handoff", "blpop", "fair", "pubsub", "spin", "redsync", "redlock", "blpop:channel=none",
	"spin:backoff=exponential,base=5ms,cap=200ms", "gated:pubsub:channel=broadcast",
}

var pages = sync.OnceValue(func() map[string][]results.File {
	hostile := synthetic([]string{`<script>alert("x")</script>`, `a & b's "lock"`, "handoff"}, []int{100}, 1)
	hostile.Warnings = results.PlainTexts(`<img src=x onerror="alert(1)">`)
	hostile.Error = "</style><script>alert(2)</script>"
	return map[string][]results.File{
		"sweep":   {{Name: "sweep.json", Report: synthetic(ten, []int{10, 50, 100, 500, 1000}, 1)}},
		"rounds":  {{Name: "rounds.json", Report: synthetic(ten[:2], []int{200}, 6)}},
		"hostile": {{Name: `<b>"name".json`, Report: hostile}},
		"empty":   {{Name: "empty.json", Report: synthetic(nil, []int{1}, 1)}},
	}
})

// seen returns a live state in which the last run of report is in progress. If report has no runs, name is the title of
// the current run.
func seen(name string, report *results.Report) Live {
	l := Live{Now: Progress{Run: 2, Runs: 4, Title: name, Round: 1, Phase: "the servers <b>"}, Report: report}
	if n := len(report.Runs); n > 0 {
		so := *report
		so.Runs = slices.Clone(report.Runs)
		run := &so.Runs[n-1]
		run.Partial = true
		l.Now.Title, l.Now.Round = run.Title(), run.Round
		l.Now.Run, l.Now.Runs = n, max(n, len(report.Asked())*report.Rounds)
		for i := range run.Timeline {
			s := &run.Timeline[i]
			s.RedisCPU, s.Commands = new(0.2+float64(i)/10), new(int64(5000))
			s.HandoffP50, s.HandoffP99 = &results.Bound{NS: 3e5}, &results.Bound{NS: 2e6, AtLeast: true}
		}
		run.Faults = []results.Fault{{
			Fault:      workloads.Fault{Name: "kill"},
			Injections: []results.Injection{{AtNS: 2e9}, {AtNS: 22e8}, {AtNS: 49e8}},
		}}
		l.Report, l.Waiting = &so, []results.Wait{{Client: 7, NS: 5e9}, {Client: 3, NS: 6e9}}
	}
	return l
}

// written returns the HTML of all test pages, both static and live. The keys of the map are the names of the pages.
var written = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for name, files := range pages() {
		var page bytes.Buffer
		if err := Write(&page, files); err != nil {
			panic(name + ": " + err.Error())
		}
		all[name] = page.String()
		page.Reset()
		if err := WriteLive(&page, seen(name, files[0].Report)); err != nil {
			panic(name + ": " + err.Error())
		}
		all[name+", live"] = page.String()
	}
	for name, rows := range map[string][][]string{
		"empty document":      {{"lock", ""}, {"spin", "1 ms"}, {"pubsub", "2 µs"}},
		"empty with a subrow": {{"lock", "p99"}, {"spin", "1 ms"}, {"", "2 µs"}},
	} {
		var page bytes.Buffer
		document := &layout.Page{HTML: true}
		document.Table(1, "<>", rows)
		if err := WriteDocument(&page, "lockbench "+name, document); err != nil {
			panic(name + ": " + err.Error())
		}
		all[name] = page.String()
	}
	return all
})
