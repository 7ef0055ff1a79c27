package measure

import (
	"math"

	"github.com/lockbench/lockbench/results"
)

// tolerance is how much the sum of a client's phases may differ from the window, in percent.
const tolerance = 0.1

// TimeAccounting compares the sum of every client's phases with the window. If they differ,
// a client has lost a sample or counted one twice, and no other figure can be trusted.
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
