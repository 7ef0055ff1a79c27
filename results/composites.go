package results

import (
	"fmt"
	"strconv"
)

// composites are the columns that show several figures, or none of Metrics.
func composites() []Column {
	several := func(r *Report) bool { return r.Rounds > 1 }
	return []Column{
		{Group: SpeedGroup, Place: 0, Heading: "runs", Shown: several, Cell: runsOf},
		{Group: SpeedGroup, Place: 2, Heading: "±\n95 %", Shown: func(r *Report) bool { return !several(r) && r.Steady() }, Cell: steadiness},
		{Group: WaitingGroup, Place: 0, Heading: "waits per\nclient", Cell: waitsOf},
		{Group: FairnessGroup, Place: -1, Heading: "acq per client\nmin–max", Shown: not(slots), Cell: acquisitionsOf},
		{Group: SafetyGroup, Place: 0, Heading: "claims", Words: true, Cell: Summary.Verdict},
		{Group: PageGroup, Place: -1, Heading: "runs", Cell: runsOf},
		{Group: PageGroup, Place: 4, Heading: "claims", Words: true, Cell: Summary.Verdict},
		{Group: ShortGroup, Place: 7, Heading: "claims", Words: true, Cell: Summary.Verdict},
	}
}

// runsOf writes the number of runs, and how many of them count.
func runsOf(s Summary) string {
	if s.AnyInvalid() && !s.Invalid {
		return fmt.Sprintf("%d of %d", len(s.Used), len(s.Runs))
	}
	return strconv.Itoa(len(s.Runs))
}

// steadiness writes how much the slices of a run differ.
func steadiness(s Summary) string {
	return s.median(maybe(func(r Run) *float64 { return r.withinRun(s.Workload) }), Percent.Format)
}

func waitsOf(s Summary) string {
	return s.median(maybe(func(r Run) *float64 {
		if r.Waiting.PerClient.P50 == nil {
			return nil
		}
		return new(float64(r.Waiting.PerClient.Count) / float64(s.Workload.Clients))
	}), Short)
}

func acquisitionsOf(s Summary) string {
	least := MedianFigure(figures(s.Used, always(func(r Run) int64 { return r.Fairness.AcquisitionsMin })))
	most := MedianFigure(figures(s.Used, always(func(r Run) int64 { return r.Fairness.AcquisitionsMax })))
	return Whole(least.Value) + "–" + Whole(most.Value) + s.Mark()
}

// starvedOf writes the starved clients and the number of all clients.
func starvedOf(s Summary) string {
	m, _ := FindMetric("starved")
	starved := s.Figure(m)
	if starved == nil {
		return NotKnown
	}
	return fmt.Sprintf("%s of %d", Whole(starved.Value), s.Workload.Clients) + s.Mark()
}

// median writes the median of the used runs.
func (s Summary) median(value func(Run) *Figure, write func(float64) string) string {
	f := MedianFigure(figures(s.Used, value))
	if f == nil {
		return NotKnown
	}
	return write(f.Value) + s.Mark()
}
