package results

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/workloads"
)

// faultGroups are a table for each fault of the workload.
func faultGroups(r *Report) []group {
	var groups []group
	seen := map[string]int{}
	for i, fault := range r.Workload.Faults {
		title := "FAULT " + fault.Name
		if seen[fault.Name]++; seen[fault.Name] > 1 {
			title += fmt.Sprintf(" #%d", seen[fault.Name])
		}
		groups = append(groups, group{title, faultColumns(r, i)})
	}
	return groups
}

// faultColumns show what became of the fault of that number.
func faultColumns(r *Report, number int) []column {
	strikes := func(s summary) []Strike {
		var all []Strike
		for _, run := range s.runs {
			if number < len(run.Faults) {
				all = append(all, run.Faults[number].Strikes...)
			}
		}
		return all
	}
	total := func(count func(Strike) int64, write func(float64) string) func(summary) string {
		return func(s summary) string {
			struck := strikes(s)
			if len(struck) == 0 {
				return unknown
			}
			var sum int64
			for _, strike := range struck {
				sum += count(strike)
			}
			return write(float64(sum))
		}
	}
	ofRuns := func(count func(Run) *int64) func(summary) string {
		return func(s summary) string { return known(s.known(count), whole) }
	}
	columns := []column{
		{"struck", false, func(s summary) string { return whole(float64(len(strikes(s)))) }},
		{"recovery\np50", false, func(s summary) string { return recovery(strikes(s), 0.5) }},
		{"recovery\nlongest", false, func(s summary) string { return recovery(strikes(s), 1) }},
		{"longest\nstall", false, func(s summary) string { return longestStall(strikes(s)) }},
		{"over-\nlaps", false, total(func(s Strike) int64 { return s.Overlaps }, whole)},
		{"late\noverlaps", false, total(func(s Strike) int64 { return s.Late }, whole)},
		{"overlap\nlength", false, total(func(s Strike) int64 { return s.OverlapNS + s.LateNS }, nanoseconds)},
		{"wake-ups\nlost", false, total(func(s Strike) int64 { return s.LostWakeUps }, whole)},
	}
	if r.Workload.Work == workloads.WorkCounter {
		columns = slices.Insert(columns, 7, column{"updates\nlost", false, ofRuns(func(r Run) *int64 { return r.Safety.LostUpdates })})
	}
	return columns
}

// never is a recovery that did not happen.
const never = "never"

// recovery is a quantile of the times to recovery, never being the longest.
func recovery(strikes []Strike, quantile float64) string {
	if len(strikes) == 0 {
		return unknown
	}
	slices.SortStableFunc(strikes, func(a, b Strike) int {
		switch {
		case a.RecoveryNS == nil && b.RecoveryNS == nil:
			return 0
		case a.RecoveryNS == nil:
			return 1
		case b.RecoveryNS == nil:
			return -1
		}
		return cmp.Compare(*a.RecoveryNS, *b.RecoveryNS)
	})
	at := strikes[int(quantile*float64(len(strikes)-1)+0.5)]
	if at.RecoveryNS == nil {
		return never
	}
	return nanoseconds(float64(*at.RecoveryNS))
}

func longestStall(strikes []Strike) string {
	one := Run{Faults: []Fault{{Strikes: strikes}}}
	if most := longest(one, func(s Strike) *Bound { return s.Stall }); most != nil {
		return most.String()
	}
	return unknown
}
