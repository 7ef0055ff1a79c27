package advise

import (
	"bytes"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// advised has every part of a document.
func advised() *Document {
	w := workloads.Default()
	w.Clients, w.Hold, w.Seed = 500, workloads.Fixed(time.Millisecond), 1
	started := time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)
	figure := func(metric string, unit results.Unit, v float64, ratio *results.Ratio) Figure {
		return Figure{document.Figure{Metric: metric, Unit: unit, Value: &results.Figure{Value: v}}, ratio}
	}
	ratio := &results.Ratio{Median: 3, Low: 2, Rounds: 6, Interval: true, AtLeast: true}
	return &Document{
		Head: document.Head{
			Schema: schema,
			Tool:   results.Tool{Name: "lockbench", Version: "v0.1.0"}, Started: started, Finished: started.Add(22 * time.Second),
			Environment: results.Environment{
				OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPUModel: "Intel Xeon E5-2680", CPUs: 2, GoMaxProcs: 2,
				Go: "go1.26.0", TimerOvershoot: 1_064_000, ClockResolution: 41,
			},
			Redis: results.Redis{Source: "container", Address: "127.0.0.1:6390", Version: "8.0.3", Mode: "standalone", Network: "host", Image: "redis:8"},
		},
		Workload: w,
		Rounds:   6, For: Efficiency,
		Choice: &Choice{
			Name: "handoff", Summary: "passes it on", Take: "github.com/lockbench/lockbench/strategies/handoff (Go)",
			RightIf: "two holders at once only waste work",
			Library: &Library{"gated:spin", strategies.Library{Language: "Python", Package: "redis", Call: "redis.lock.Lock"}},
		},
		Ranking: []Row{
			{Name: "handoff", Claims: []string{"exclusion", "FIFO"}, Verdict: "held", Figures: []Figure{
				figure("served_per_s", results.PerSecond, 806, nil), figure("wait_per_client_p90", results.Nanoseconds, 2e7, nil),
			}},
			{Name: "gated:spin", Claims: []string{"exclusion"}, Verdict: "held", Why: "handoff is 3.00 (≥ 2.00) times as good by a figure | with a name that is long enough for a second line", Figures: []Figure{
				figure("served_per_s", results.PerSecond, 790, ratio),
				{Figure: document.Figure{Metric: "wait_per_client_p90", Unit: results.Nanoseconds}},
			}},
		},
		Notes:    []Sentence{{Text: "3 of 9 runs kept the machine busy.", Evidence: []findings.Evidence{{Metric: "runs", Value: &results.Figure{Value: 3}}}}},
		LeftOut:  []results.LeftOut{{Strategy: "setnx", Why: "unsafe: it blocks for ever"}},
		Commands: []string{"lockbench --strategy handoff,spin --clients 500 --instances 10 --hold 1ms --duration 500ms --warmup 200ms --runs 6 --no-baselines"},
	}
}

func TestAdviceIsWritten(t *testing.T) {
	t.Parallel()
	none := advised()
	none.Choice, none.Ranking, none.Interrupted, none.Rounds = nil, nil, true, 3
	for file, write := range map[string]func(*bytes.Buffer) error{
		"advice.txt":      func(b *bytes.Buffer) error { return WriteTable(b, advised(), false) },
		"advice.ansi":     func(b *bytes.Buffer) error { return WriteTable(b, advised(), true) },
		"advice.json":     func(b *bytes.Buffer) error { return WriteJSON(b, advised()) },
		"advice.md":       func(b *bytes.Buffer) error { return WriteMarkdown(b, advised()) },
		"advice-none.txt": func(b *bytes.Buffer) error { return WriteTable(b, none, false) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+file, written.String())
	}
}
