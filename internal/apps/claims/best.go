package claims

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// best says whether the operand is the best of several.
func (o operand) best() bool { return len(o.titles) > 1 }

// bestOf returns the best figure of a round, by the metric's direction, and whose it is; of equal ones the
// first. It returns nil if one figure is not known, because that one may be the best. If lower is
// better, a lower bound counts as its value: that is the best that it may have been.
func (o operand) bestOf(look func(title string) *results.Figure) (best *results.Figure, whose string) {
	for _, title := range o.titles {
		f := look(title)
		if f == nil {
			return nil, ""
		}
		lower := o.metric.Better == results.Lower
		if best == nil || lower && f.Value < best.Value || !lower && f.Value > best.Value {
			best, whose = &results.Figure{Value: f.Value, AtLeast: f.AtLeast && !lower}, title
		}
	}
	return best, whose
}

// look returns the operand's figure in a round, and for the best of several, whose it is.
func (o operand) look(m *measured, round int) (*results.Figure, string) {
	of := func(title string) *results.Figure { return o.of(m, title, round) }
	if o.best() {
		return o.bestOf(of)
	}
	return of(o.titles[0]), ""
}

// winner is a strategy with the number of rounds in which it was the best.
type winner struct {
	name   string
	rounds int
}

// winners returns those that were the best in some round, the most frequent first.
func (f FigureResult) winners() []winner {
	count := map[string]int{}
	for _, name := range f.Best {
		if name != "" {
			count[name]++
		}
	}
	var all []winner
	for _, name := range slices.Sorted(maps.Keys(count)) {
		all = append(all, winner{name, count[name]})
	}
	slices.SortStableFunc(all, func(a, b winner) int { return cmp.Compare(b.rounds, a.rounds) })
	return all
}
