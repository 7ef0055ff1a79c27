package measure

import (
	"math"

	"github.com/lockbench/lockbench/results"
)

// tolerance is how far a client's phases may be from the window, in percent.
const tolerance = 0.1

// Books balances every client's phases against the window. A client whose
// phases do not cover it has lost a sample, or counted one twice, and then no
// other figure can be trusted either.
func (r *Recorder) Books() results.Books {
	length := r.window.Length()
	b := results.Books{Window: seconds(length) * float64(len(r.clients))}
	for _, c := range r.clients {
		b.Wait += seconds(c.books[waiting])
		b.Hold += seconds(c.books[holding])
		b.Release += seconds(c.books[releasing])
		b.Think += seconds(c.books[thinking])
		var sum int64
		for _, ns := range c.books {
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
