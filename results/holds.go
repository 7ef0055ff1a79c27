package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// equalHolds is by how much the mean holds of strategies may differ for their
// speeds to be compared as they are.
const equalHolds = 1.03

// HoldsNote tells a reader that strategies held for different times: what they
// did in the same time is then no comparison of the locks. It is empty where they did not.
func HoldsNote(all []Summary) string {
	type held struct {
		who string
		ns  float64
	}
	points := map[string][]held{}
	var order, notes []string
	for _, s := range all {
		mean := MedianFigure(figures(s.Used, meanHold))
		if mean == nil {
			continue
		}
		if points[s.Point] == nil {
			order = append(order, s.Point)
		}
		points[s.Point] = append(points[s.Point], held{s.Title(), mean.Value})
	}
	for _, point := range order {
		byHold := func(a, b held) int { return cmp.Compare(a.ns, b.ns) }
		least, most := slices.MinFunc(points[point], byHold), slices.MaxFunc(points[point], byHold)
		if most.ns > equalHolds*least.ns {
			notes = append(notes, fmt.Sprintf("%s %s, %s %s", most.who, Nanoseconds.Format(most.ns), least.who, Nanoseconds.Format(least.ns)))
		}
	}
	if notes == nil {
		return ""
	}
	return "mean holds differ by over 3 % (" + strings.Join(notes, "; ") + "): compare the gap, not acq/s"
}
