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

func meanHold(r Run) *float64 { return r.Speed.Hold.MeanNS }

// holdsNote tells a reader that strategies held for different times: what they
// did in the same time is then no comparison of the locks.
func holdsNote(all []summary) string {
	points := map[string][]summary{}
	var order []string
	for _, s := range all {
		if s.median(meanHold) == nil {
			continue
		}
		if points[s.point] == nil {
			order = append(order, s.point)
		}
		points[s.point] = append(points[s.point], s)
	}
	var notes []string
	for _, point := range order {
		byHold := func(a, b summary) int { return cmp.Compare(*a.median(meanHold), *b.median(meanHold)) }
		shortest, longest := slices.MinFunc(points[point], byHold), slices.MaxFunc(points[point], byHold)
		least, most := *shortest.median(meanHold), *longest.median(meanHold)
		if most > equalHolds*least {
			notes = append(notes, fmt.Sprintf("%s %s, %s %s", longest.title(), nanoseconds(most), shortest.title(), nanoseconds(least)))
		}
	}
	if notes == nil {
		return ""
	}
	return "mean holds differ by over 3 % (" + strings.Join(notes, "; ") + "): compare the gap, not acq/s"
}
