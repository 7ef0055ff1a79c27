package measure

import (
	"math"

	"github.com/lockbench/lockbench/results"
)

// tolerance is how far a client's phases may be from the window, in percent.
const tolerance = 0.1

// TimeAccounting balances every client's phases against the window. A client whose
// phases do not cover it has lost a sample, or counted one twice, and then no
// other figure can be trusted either.
func (r *Recorder) TimeAccounting() results.TimeAccounting {
	length := r.window.Length()
	b := results.TimeAccounting{Window: seconds(length) * float64(len(r.clients))}
	for _, c := range r.clients {
		b.Wait += seconds(c.spent[waiting])
		b.Hold += seconds(c.spent[holding])
		b.Release += seconds(c.spent[releasing])
		b.Think += seconds(c.spent[thinking])
		var sum int64
		for _, ns := range c.spent {
			sum += ns
		}
		if length > 0 {
			b.WorstPercent = max(b.WorstPercent, math.Abs(float64(sum-length))/float64(length)*100)
		}
	}
	b.Balanced = length > 0 && b.WorstPercent <= tolerance
	return b
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
