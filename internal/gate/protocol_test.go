package gate

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/lockbench/lockbench/results"
)

// protocol is what the proof says, in Markdown.
type protocol struct {
	bytes.Buffer
	failed []string
}

func newProtocol(r *results.Report) *protocol {
	p := &protocol{}
	fmt.Fprintf(p, "Measured on %s with %s, %d × %s, Redis %s.\n\n", time.Now().UTC().Format("2006-01-02"),
		r.Environment.Go, r.Environment.CPUs, r.Environment.CPUModel, r.Redis.Version)
	fmt.Fprintln(p, "| comparisons | called worse | of | share | 95 % interval | wanted | |")
	fmt.Fprintln(p, "|---|---:|---:|---:|---:|---|---|")
	return p
}

// line is one kind of comparison and whether it is as it should be.
func (p *protocol) line(kind string, worse, of int, good func(share float64) bool, wanted string) {
	share := float64(worse) / float64(of)
	low, high := clopperPearson(worse, of)
	verdict := "held"
	if !good(share) {
		verdict = "**not held**"
		p.failed = append(p.failed, fmt.Sprintf("%s: %d of %d called worse, wanted %s", kind, worse, of, wanted))
	}
	fmt.Fprintf(p, "| %s | %d | %d | %.1f %% | %.1f to %.1f %% | %s | %s |\n",
		kind, worse, of, share*100, low*100, high*100, wanted, verdict)
}

// rarely is the share of false alarms that the gate may have.
func rarely(share float64) bool { return share <= 0.05 }

// describe says what the comparisons were like.
func (p *protocol) describe(equal, slower, costly trials) {
	effect := func(t trial) float64 { return *t.primary().Delta * 100 }
	fmt.Fprintf(p, "\n- A/A and slower: `%s`, %d pairs each; one command more: `%s`\n",
		strings.Join(contended, " "), pairs, strings.Join(apart, " "))
	fmt.Fprintf(p, "- A/A: the change of acquisitions/s is %+.1f %% in the median; "+
		"a slowdown of %.1f %% would have been found\n",
		equal.medianOf(effect), equal.medianOf(func(t trial) float64 { return -*t.primary().Detectable * 100 }))
	fmt.Fprintf(p, "- slower: injected were %.1f %% in the median, the larger of 10 %% and what the A/A comparison "+
		"just before would have found; it came to %+.1f %%\n",
		slower.medianOf(func(t trial) float64 { return t.injected * 100 }), slower.medianOf(effect))
	fmt.Fprintf(p, "- %d of %d slower heads were found by acquisitions/s itself, the others by handoff or another "+
		"metric\n", slower.by("acq_per_s"), len(slower))
	fmt.Fprintf(p, "- the longest comparison took %v\n",
		max(equal.slowest(), slower.slowest(), costly.slowest()).Round(time.Second))
}

// clopperPearson is the exact 95 % interval of a share (Biometrika 26, 1934): the
// shares at which so many, or more, or fewer have a probability of 2.5 %.
func clopperPearson(hits, of int) (low, high float64) {
	solve := func(tooLow func(share float64) bool) float64 {
		from, to := 0.0, 1.0
		for range 60 {
			if middle := (from + to) / 2; tooLow(middle) {
				from = middle
			} else {
				to = middle
			}
		}
		return from
	}
	atMost := func(n int, share float64) float64 { return stats.BinomialDist{N: of, P: share}.CDF(float64(n)) }
	low, high = 0, 1
	if hits > 0 {
		low = solve(func(share float64) bool { return 1-atMost(hits-1, share) < 0.025 })
	}
	if hits < of {
		high = solve(func(share float64) bool { return atMost(hits, share) > 0.025 })
	}
	return low, high
}

func TestClopperPearson(t *testing.T) {
	for _, test := range []struct {
		hits, of  int
		low, high float64
	}{
		{0, 20, 0, 0.1684}, {20, 20, 0.8316, 1}, {1, 20, 0.0013, 0.2487}, {10, 100, 0.0490, 0.1762},
	} {
		low, high := clopperPearson(test.hits, test.of)
		if math.Abs(low-test.low) > 1e-4 || math.Abs(high-test.high) > 1e-4 {
			t.Errorf("%d of %d: %.4f to %.4f, want %.4f to %.4f", test.hits, test.of, low, high, test.low, test.high)
		}
	}
}
