package results

import (
	"cmp"
	"maps"
	"slices"
)

// ClaimConfidence is that of the intervals of claims: at most 1 % lies beyond either end.
const ClaimConfidence = 0.98

// ClaimInterval is the median of a figure's rounds and between what the true one lies.
type ClaimInterval struct {
	Median Figure `json:"median"`
	Low    Figure `json:"low"`
	High   Figure `json:"high"`
	Rounds int    `json:"rounds"` // that are known
	// Confidence is 0 if there are too few rounds for any: then Low and High are the
	// smallest and the largest.
	Confidence float64 `json:"confidence"`
}

// NewClaimInterval is that of the rounds that are known; nil if none is.
func NewClaimInterval(values []*Figure) *ClaimInterval {
	var known []Figure
	for _, v := range values {
		if v != nil {
			known = append(known, *v)
		}
	}
	if len(known) == 0 {
		return nil
	}
	i := &ClaimInterval{Median: *MedianFigure(known), Rounds: len(known)}
	sure := false
	if i.Low, i.High, sure = FigureInterval(known, ClaimConfidence); sure {
		i.Confidence = ClaimConfidence
	}
	return i
}

// ClaimBest is in how many rounds somebody was the best.
type ClaimBest struct {
	Name   string
	Rounds int
}

// BestRounds counts them, the most frequent first.
func (f ClaimFigure) BestRounds() []ClaimBest {
	count := map[string]int{}
	for _, name := range f.Best {
		if name != "" {
			count[name]++
		}
	}
	var all []ClaimBest
	for _, name := range slices.Sorted(maps.Keys(count)) {
		all = append(all, ClaimBest{name, count[name]})
	}
	slices.SortStableFunc(all, func(a, b ClaimBest) int { return cmp.Compare(b.Rounds, a.Rounds) })
	return all
}

// ClaimShown is what a run came to beside what was expected of it.
type ClaimShown struct {
	Runs    int `json:"runs"`     // of its strategies
	LeftOut int `json:"left_out"` // of these: they cannot be trusted, and no figure is from them
	Hurried int `json:"hurried"`  // in which the machine and not the lock set the pace, as their labels tell
	// Strategies are the medians of their rounds.
	Strategies []ClaimStrategy `json:"strategies"`
}

// ClaimStrategy is a strategy of a run, of a sweep with its point.
type ClaimStrategy struct {
	Name    string            `json:"name"`
	Figures []ContenderFigure `json:"figures"`
}
