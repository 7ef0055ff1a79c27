package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Table is a title and its columns.
type Table struct {
	Title   string
	Columns []Shown
}

// Extras are the tables that only some workloads have: of bursts and of each fault.
func (r *Report) Extras() []Table {
	tables := []Table{{string(HerdGroup), Columns(HerdGroup, r)}}
	return slices.DeleteFunc(append(tables, r.FaultTables()...), func(t Table) bool { return len(t.Columns) == 0 })
}

// FaultTables returns one table for each fault of the workload.
func (r *Report) FaultTables() []Table {
	var tables []Table
	seen := map[string]int{}
	for i, fault := range r.Workload.Faults {
		t := Table{Title: "FAULT " + fault.Name}
		if seen[fault.Name]++; seen[fault.Name] > 1 {
			t.Title += fmt.Sprintf(" #%d", seen[fault.Name])
		}
		for _, c := range faultColumns(i) {
			if c.Shown == nil || c.Shown(r) {
				t.Columns = append(t.Columns, Shown{Column: c})
			}
		}
		tables = append(tables, t)
	}
	return tables
}

// faultColumns are the columns of the fault with this index.
func faultColumns(number int) []Column {
	injections := func(runs []Run) []Injection {
		var all []Injection
		for _, run := range runs {
			if number < len(run.Faults) {
				all = append(all, run.Faults[number].Injections...)
			}
		}
		return all
	}
	of := func(write func([]Injection) string) func(Summary) string {
		return func(s Summary) string { return write(injections(s.Runs)) }
	}
	total := func(count func(Injection) int64, write func(float64) string) func(Summary) string {
		return of(func(struck []Injection) string {
			if len(struck) == 0 {
				return NotKnown
			}
			var sum int64
			for _, strike := range struck {
				sum += count(strike)
			}
			return write(float64(sum))
		})
	}
	lost, _ := FindMetric("lost_updates") // of the whole run
	return []Column{
		{Heading: "struck", Cell: of(func(struck []Injection) string { return Whole(float64(len(struck))) })},
		{Heading: "recovery\np50", Cell: func(s Summary) string { return recovery(injections(s.Used), 0.5) }},
		{Heading: "recovery\nlongest", Cell: of(func(struck []Injection) string { return recovery(struck, 1) })},
		{Heading: "longest\nstall", Cell: of(func(struck []Injection) string { return LongestStall(struck).String() })},
		{Heading: "over-\nlaps", Cell: total(func(s Injection) int64 { return s.Overlaps }, Whole)},
		{Heading: "overlaps\nafter expiry", Cell: total(func(s Injection) int64 { return s.Late }, Whole)},
		{Heading: "overlap\nlength", Cell: total(func(s Injection) int64 { return s.OverlapNS + s.LateNS }, Nanoseconds.Format)},
		{Heading: "updates\nlost", Shown: counted, Cell: func(s Summary) string { return Shown{Metric: lost}.Text(s) }},
		{Heading: "wake-ups\nlost", Cell: total(func(s Injection) int64 { return s.LostWakeUps }, Whole)},
	}
}

// never stands for a recovery that did not happen.
const never = "never"

// recovery is a quantile of the recovery times, by nearest rank; never counts as the longest.
func recovery(injections []Injection, quantile float64) string {
	if len(injections) == 0 {
		return NotKnown
	}
	slices.SortStableFunc(injections, func(a, b Injection) int {
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
	at := injections[int(math.Ceil(quantile*float64(len(injections))))-1]
	if at.RecoveryNS == nil {
		return never
	}
	return Nanoseconds.Format(float64(*at.RecoveryNS))
}
