//go:build !race

// One goroutine records a million waits, so there can be no race. The race detector would only make these tests take
// half a minute.

package measure

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
)

// knownLock is a lock whose waits have a known distribution. Without a timeout they are exponential with a mean of 300
// ms, except that those of starved clients never end. It excludes no client.
type knownLock struct {
	starved float64 // share of the clients that never acquire it
	timeout int64   // ns; 0 means none
	ends    howItEnds
}

// howItEnds describes when a lock ends waits that exceed the timeout. The zero value ends them within 1 % of the
// timeout after it.
type howItEnds struct {
	name string
	// late is the share of waits to which a lease is granted up to half a timeout late, as if the grant had crossed the
	// timeout.
	late float64
	deaf float64 // share of the waits that end only at four times the timeout
}

const (
	knownMean   = 300 * int64(time.Millisecond)
	knownWindow = 5 * second
)

// never is longer than any window: the length of a wait that does not end.
const never = int64(math.MaxInt64 / 2)

// record simulates clients of the lock in a closed loop and returns their records. first is the number of the first
// client. The clients begin at different times before the window opens, so that their timeouts are spread over the
// window.
func (l knownLock) record(first, clients int) results.Run {
	window := NewWindow(NewClock(), 0)
	window.Plan(second, second+knownWindow)
	r := NewRecorder(window, clients)
	for i := range clients {
		// The random numbers depend on the client's number and not on the recorder. Of each hundred clients, the first
		// l.starved*100 starve.
		random := rand.New(rand.NewPCG(uint64(first+i), uint64(l.timeout)))
		l.use(r.Client(i), window, random, float64((first+i)%100) < l.starved*100)
	}
	return recorded(r)
}

func (l knownLock) use(c *Client, window *Window, random *rand.Rand, starves bool) {
	at := -random.Int64N(max(knownMean, 8*l.timeout))
	for at < window.End() {
		wait := int64(random.ExpFloat64()*float64(knownMean)) + 1
		if starves {
			wait = never
		}
		outcome, limit := l.limit(random, wait)
		if outcome == Stopped {
			limit = window.End() - at
		}
		if wait > limit {
			c.Waited(outcome, at, at, at+limit, 0)
			at += limit
			continue
		}
		at += wait
		c.Acquired(Acquisition{
			Due: at - wait, Asked: at - wait, Granted: at, Released: at, Done: at, Grant: Grant{Handoff: none},
			Counted: true,
		})
	}
}

// limit returns how a wait ends if it exceeds the returned time in nanoseconds. Without a timeout, the outcome is
// Stopped.
func (l knownLock) limit(random *rand.Rand, wait int64) (Outcome, int64) {
	switch u := random.Float64(); {
	case l.timeout == 0:
		return Stopped, 0
	case u < l.ends.late && wait < l.timeout*3/2:
		return TimedOut, wait
	case u > 1-l.ends.deaf:
		return TimedOut, 4 * l.timeout
	}
	return TimedOut, l.timeout + random.Int64N(l.timeout/100)
}

// truth returns the q-quantile that waits would have without a timeout. never is the share of the waits that do not
// end.
func truth(q, never float64) float64 {
	if left := 1 - q - never; left > 0 {
		return -math.Log(left/(1-never)) * float64(knownMean)
	}
	return math.Inf(1)
}

// starvedWaits returns the share of all waits that starved clients begin.
func (l knownLock) starvedWaits() float64 {
	if l.timeout == 0 {
		return l.starved
	}
	others := float64(knownMean) * (1 - math.Exp(-float64(l.timeout)/float64(knownMean))) // mean wait
	return l.starved / (l.starved + (1-l.starved)*float64(l.timeout)/others)
}

// An exact percentile must equal that of the waits without a timeout, and a lower bound must not exceed it. If the true
// percentile exceeds the timeout, the bound must be at least the timeout.
func TestPercentilesOfKnownWaits(t *testing.T) {
	t.Parallel()
	inTime := howItEnds{name: "in time"}
	for _, timeout := range []int64{0, 50, 150, 300, 900, 2000} { // ms
		for _, starved := range []float64{0, 0.02, 0.14, 0.9} {
			for _, ends := range []howItEnds{inTime, {"a few late", 0.01, 0}, {"many late", 0.5, 0.2}} {
				if timeout == 0 && ends != inTime {
					continue
				}
				l := knownLock{starved, timeout * int64(time.Millisecond), ends}
				name := fmt.Sprintf("timeout %d ms, which ends waits %s; %g of the clients starve", timeout, ends.name,
					starved)
				l.check(t, name, l.record(0, 800).Waiting)
			}
		}
	}
}

// chance is the factor by which a percentile of the waits of 800 clients may differ from the truth by chance.
const chance = 1.15

func (l knownLock) check(t *testing.T, name string, w results.Waiting) {
	t.Helper()
	for _, p := range []struct {
		q                    float64
		all, service, client *results.Bound
	}{
		{0.5, w.PerAcquisition.P50, w.Service.P50, w.PerClient.P50},
		{0.9, w.PerAcquisition.P90, w.Service.P90, w.PerClient.P90},
		{0.95, w.PerAcquisition.P95, w.Service.P95, w.PerClient.P95},
		{0.99, w.PerAcquisition.P99, w.Service.P99, w.PerClient.P99},
	} {
		// Without a timeout, a starved client begins no wait in the window, but its open wait counts from the age that it had
		// when the window opened. The true percentile is therefore between that without such waits and that with them. The
		// same holds if some waits end very late, because starved clients then begin a smaller share of the waits than
		// starvedWaits returns.
		least, most := truth(p.q, l.starvedWaits()), truth(p.q, l.starvedWaits())
		if l.timeout == 0 || l.ends.deaf > 0 {
			least = truth(p.q, 0)
		}
		perClient := truth(p.q, l.starved)
		for _, kind := range []struct {
			name        string
			got         *results.Bound
			least, most float64
		}{
			{"wait", p.all, least, most},
			{"service", p.service, least, most},
			{"wait_per_client", p.client, perClient, perClient},
		} {
			what := fmt.Sprintf("%s: %s p%g is %v, the truth %.4g to %.4g ms", name, kind.name, p.q*100, kind.got,
				kind.least/1e6, kind.most/1e6)
			switch got := kind.got; {
			case got == nil, float64(got.NS) > chance*kind.most, !got.AtLeast && float64(got.NS) < kind.least/chance:
				t.Error(what)
			case got.AtLeast && kind.name != "wait_per_client" && l.starved == 0 && l.ends.late+l.ends.deaf == 0 &&
				(l.timeout == 0 || kind.most < float64(l.timeout)/chance):
				t.Errorf("%s, and could be known", what)
			case l.timeout > 0 && kind.least > chance*float64(l.timeout) && got.NS < l.timeout*99/100 &&
				4*l.timeout < knownWindow:
				t.Errorf("%s: less than the timeout", what)
			}
		}
		if got := p.client; l.timeout == 0 && l.starved > 1-p.q && (!got.AtLeast || got.NS < knownWindow) {
			t.Errorf("%s: wait_per_client p%g is %v, in a window of %v", name, p.q*100, got, time.Duration(knownWindow))
		}
	}
}

// Two generators record 150 clients each. Their sum must have the same percentiles as one record of all 300 clients.
func TestSumOfGeneratorsHasTheSamePercentiles(t *testing.T) {
	t.Parallel()
	for _, l := range []knownLock{{0.14, 0, howItEnds{}}, {0.14, knownMean, howItEnds{late: 0.1}}} {
		sum, want := l.record(0, 150), l.record(0, 300).Waiting
		sum.Add(l.record(150, 150))
		sum.Compute()
		got := sum.Waiting
		for _, pair := range [][2]results.Distribution{
			{got.PerAcquisition, want.PerAcquisition}, {got.Service, want.Service}, {got.PerClient, want.PerClient},
		} {
			if *pair[0].P50 != *pair[1].P50 || *pair[0].P99 != *pair[1].P99 || pair[0].Censored != pair[1].Censored {
				t.Errorf("timeout %v: p50 %v and p99 %v, together %v and %v", time.Duration(l.timeout), pair[0].P50,
					pair[0].P99, pair[1].P50, pair[1].P99)
			}
		}
	}
}
