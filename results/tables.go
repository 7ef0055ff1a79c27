package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// Group is a table of figures with one row per strategy.
type Group string

// The tables, in the order of a reader's questions: how fast, who waits, is it fair, what
// does it cost Redis, does it exclude.
const (
	SpeedGroup    Group = "SPEED"
	RatioGroup    Group = "RATIO to the first" // each strategy beside the first, round by round
	HerdGroup     Group = "HERD one release"
	WaitingGroup  Group = "WAITING time"
	FairnessGroup Group = "FAIRNESS"
	CostGroup     Group = "COST per acquisition"
	LoadGroup     Group = "LOAD on the servers"
	SpreadGroup   Group = "SPREAD min–max" // the smallest and the largest figure of the rounds
	SafetyGroup   Group = "SAFETY"
	PageGroup     Group = "PAGE" // the first table of the page for a browser

	ShortGroup      Group = "SHORT"       // the one table that is printed first
	ShortRatioGroup Group = "SHORT RATIO" // the part of RatioGroup that is printed under SHORT
)

// Column is a column of a table.
type Column struct {
	Group   Group
	Heading string // up to two lines
	// Shown says whether a report has a figure for the column; nil means always.
	Shown func(*Report) bool
	// Cell writes the cell; nil means the figure in its unit.
	Cell func(Summary) string
	// Words says that the cells are text, not numbers.
	Words bool

	metric string // its name; "" if the column shows several figures or none
}

// Shown is a column of a group with its metric; a composite column has none.
type Shown struct {
	Column
	Metric
}

// layout lists the columns of the tables in their order.
func layout() []Column {
	several := func(r *Report) bool { return r.Rounds > 1 }
	unsteady := func(r *Report) bool { return r.Rounds <= 1 && r.Steady() }
	threaded := anyRun(func(r Run) bool { return r.Server.Window.threaded() })
	refused := anyRun(func(r Run) bool { return r.Safety.Refused != nil })
	herd := anyRun(func(r Run) bool { return r.Herd != nil })
	alone, closed := not(coalesced), not(slots) // clients that shared a lease are no part of a gap
	all := func(*Report) bool { return true }
	const speed, waiting, fair, cost = SpeedGroup, WaitingGroup, FairnessGroup, CostGroup
	col := func(g Group, shown func(*Report) bool, metric, heading string) Column {
		return Column{Group: g, Heading: heading, Shown: shown, metric: metric}
	}
	text := func(g Group, shown func(*Report) bool, heading string, cell func(Summary) string) Column {
		return Column{Group: g, Heading: heading, Shown: shown, Cell: cell}
	}
	claims := func(g Group) Column { return Column{Group: g, Heading: "claims", Words: true, Cell: Summary.Verdict} }
	return []Column{
		text(speed, several, "runs", runsOf),
		col(speed, nil, "acq_per_s", "acq/s"),
		text(speed, unsteady, "±\n95 %", steadiness),
		col(speed, alone, "gap", "gap"),
		col(speed, coalesced, "served_per_s", "served/s"),
		col(speed, nil, "utilisation", "utili-\nsation"),
		col(speed, nil, "hold_mean", "hold\nmean"),
		col(speed, nil, "handoff_p50", "handoff\np50"),
		col(speed, nil, "handoff_p99", "handoff\np99"),
		col(speed, passed, "passes_within_instance", "in one\nprocess"),
		col(speed, nil, "release_p50", "release\np50"),

		col(RatioGroup, nil, "acq_per_s", "acq/s"),
		col(RatioGroup, nil, "wait_per_client_p99", "wait p99\nper client"),
		col(RatioGroup, nil, "commands_per_acq", "commands\nper acq"),
		col(RatioGroup, nil, "redis_cpu_per_acq", "server CPU\nper acq"),

		col(HerdGroup, herd, "bursts", "bursts"),
		col(HerdGroup, herd, "burst_attempts", "attempts"),
		col(HerdGroup, herd, "burst_wake_ups", "wake-ups"),
		col(HerdGroup, herd, "burst_commands", "commands"),
		col(HerdGroup, herd, "first_handoff_p50", "first\nhandoff"),
		col(HerdGroup, herd, "drain_p50", "drain\np50"),
		col(HerdGroup, herd, "drain_commands_per_acq", "commands\nper acq"),
		col(HerdGroup, herd, "drain_cpu_max", "peak\nCPU"),

		col(waiting, nil, "wait_p50", "per acq\np50"),
		col(waiting, nil, "wait_p99", "per acq\np99"),
		col(waiting, nil, "wait_max", "per acq\nmax"),
		col(waiting, nil, "wait_per_client_p50", "per client\np50"),
		col(waiting, nil, "wait_per_client_p99", "per client\np99"),
		text(waiting, nil, "waits per\nclient", waitsOf),
		col(waiting, nil, "waits_unfinished", "unfinished"),
		col(waiting, nil, "timed_out", "timed\nout"),
		col(waiting, openLoop, "start_lateness_p99", "starts\nlate p99"),

		text(fair, closed, "acq per client\nmin–max", acquisitionsOf),
		col(fair, nil, "jain", "Jain\nindex"),
		{Group: fair, Heading: "starved\nclients", Shown: closed, Cell: starvedOf, metric: "starved"},
		col(fair, nil, "longest_wait", "longest\nwait"),
		col(fair, nil, "working_set", "working\nset"),
		col(fair, nil, "reacquire_distance_p50", "reacquire\ndistance"),
		col(fair, nil, "overtaken", "overtaken"),
		col(fair, nil, "largest_bypass", "largest\nbypass"),

		col(cost, nil, "commands_per_acq", "commands"),
		col(cost, nil, "round_trips_per_acq", "round\ntrips"),
		col(cost, nil, "bytes_in_per_acq", "bytes\nin"),
		col(cost, nil, "bytes_out_per_acq", "bytes\nout"),
		col(cost, not(threaded), "redis_cpu_per_acq", "server\nCPU"),
		col(cost, threaded, "redis_main_cpu_per_acq", "main\nthread"),
		col(cost, threaded, "redis_rest_cpu_per_acq", "other\nthreads"),
		col(cost, nil, "attempts_per_acq", "attempts"),
		col(cost, nil, "wake_ups_per_acq", "wake-ups"),
		col(cost, nil, "futile_wake_ups_per_acq", "futile\nwake-ups"),

		col(LoadGroup, nil, "redis_cpu", "CPU of\none core"),
		col(LoadGroup, nil, "connections", "connections\npeak"),
		col(LoadGroup, nil, "subscriptions", "subscriptions\npeak"),
		col(LoadGroup, nil, "redis_memory", "memory\npeak"),
		col(LoadGroup, nil, "other_traffic", "other clients'\ntraffic"),

		col(SpreadGroup, nil, "acq_per_s", "acq/s"),
		col(SpreadGroup, nil, "handoff_p50", "handoff\np50"),
		col(SpreadGroup, nil, "redis_cpu_per_acq", "server CPU\nper acq"),
		col(SpreadGroup, nil, "redis_cpu", "server CPU\nof one core"),
		col(SpreadGroup, nil, "other_cpu", "other CPU\nof all"),

		claims(SafetyGroup),
		col(SafetyGroup, nil, "overlaps", "overlaps"),
		col(SafetyGroup, nil, "overlaps_after_expiry", "overlaps\nafter\nexpiry"),
		col(SafetyGroup, counted, "lost_updates", "updates\nlost"),
		col(SafetyGroup, refused, "refused_updates", "updates\nrefused"),
		col(SafetyGroup, nil, "fencing_regressions", "fencing\nbroken"),
		col(SafetyGroup, nil, "leases_lost", "leases\nlost"),
		col(SafetyGroup, nil, "leftovers", "leftovers"),
		col(SafetyGroup, nil, "hung_clients", "clients\nhung"),
		col(SafetyGroup, nil, "errors", "errors"),

		text(PageGroup, all, "runs", runsOf),
		col(PageGroup, nil, "acq_per_s", "acq/s"),
		col(PageGroup, nil, "utilisation", "held"),
		col(PageGroup, nil, "wait_p50", "wait p50"),
		col(PageGroup, nil, "wait_p99", "wait p99"),
		col(PageGroup, nil, "wait_per_client_p99", "p99 per client"),
		col(PageGroup, nil, "starved", "starved"),
		col(PageGroup, nil, "handoff_p50", "handoff p50"),
		col(PageGroup, nil, "commands_per_acq", "commands"),
		col(PageGroup, nil, "redis_cpu_per_acq", "server CPU"),
		claims(PageGroup),

		col(ShortGroup, nil, "acq_per_s", "acq/s"),
		col(ShortGroup, alone, "gap", "gap"),
		col(ShortGroup, coalesced, "served_per_s", "served/s"),
		col(ShortGroup, nil, "handoff_p50", "handoff\np50"),
		col(ShortGroup, nil, "wait_per_client_p99", "wait p99\n/client"),
		col(ShortGroup, closed, "starved", "starved"),
		col(ShortGroup, nil, "commands_per_acq", "cmds\n/acq"),
		col(ShortGroup, nil, "redis_cpu_per_acq", "CPU\n/acq"),
		claims(ShortGroup),

		col(ShortRatioGroup, nil, "acq_per_s", "acq/s"),
		col(ShortRatioGroup, nil, "wait_per_client_p99", "wait p99\nper client"),
		col(ShortRatioGroup, nil, "redis_cpu_per_acq", "server CPU\nper acq"),
	}
}

// Columns returns the columns of a group for which a report has figures.
func Columns(g Group, r *Report) []Shown {
	return columns(func(c Column) bool { return c.Group == g && (c.Shown == nil || c.Shown(r)) })
}

// SafetyColumns returns the metrics of the safety table, whether a report has figures or not.
func SafetyColumns() []Shown {
	var all []Shown
	for _, m := range Metrics() {
		all = append(all, columns(func(c Column) bool { return c.Group == SafetyGroup && c.metric == m.Name })...)
	}
	return all
}

func columns(wanted func(Column) bool) []Shown {
	var all []Shown
	for _, c := range layout() {
		if wanted(c) {
			m, _ := FindMetric(c.metric)
			all = append(all, Shown{c, m})
		}
	}
	return all
}

// Flat returns the heading in one line.
func (c Column) Flat() string { return strings.NewReplacer("-\n", "", "\n", " ").Replace(c.Heading) }

// Text returns a strategy's cell: the median or the sum of its runs, in the metric's unit.
func (c Shown) Text(s Summary) string {
	if c.Cell != nil {
		return c.Cell(s)
	}
	f := s.over(c.Metric, c.Metric.shown)
	if f == nil {
		return NotKnown
	}
	text := f.Text(c.Unit)
	switch {
	case c.Whole:
		text = f.bounded(Whole(f.Value))
	case c.is&rough != 0:
		text = f.bounded(c.Unit.inDigits(f.Value, 2))
	case c.Unit == PerSecond: // the heading has the unit
		text = strings.TrimSuffix(text, "/s")
	}
	if c.is&summed != 0 { // a single violation counts, even in an invalid run
		return text
	}
	return text + s.Mark()
}

func coalesced(r *Report) bool { return r.Workload.Coalesce }

func counted(r *Report) bool { return r.Workload.Work == workloads.WorkCounter }

func openLoop(r *Report) bool { return r.Workload.Rate > 0 }

func slots(r *Report) bool { return r.Workload.Slots() }

// anyRun says whether has is true for a run of the report.
func anyRun(has func(Run) bool) func(*Report) bool {
	return func(r *Report) bool { return slices.ContainsFunc(r.Runs, has) }
}

// passed says whether a lock passed from client to client of several application instances.
func passed(r *Report) bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Fairness.PassesWithin != nil && r.WorkloadOf(run).Instances > 1
	})
}

func not(has func(*Report) bool) func(*Report) bool {
	return func(r *Report) bool { return !has(r) }
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
	return s.median(func(r Run) any { return r.withinRun(s.Workload) }, Percent.Format)
}

func waitsOf(s Summary) string {
	return s.median(func(r Run) any {
		if r.Waiting.PerClient.P50 == nil {
			return nil
		}
		return float64(r.Waiting.PerClient.Count) / float64(s.Workload.Clients)
	}, Short)
}

func acquisitionsOf(s Summary) string {
	least := s.median(func(r Run) any { return r.Fairness.AcquisitionsMin }, Whole)
	most := s.median(func(r Run) any { return r.Fairness.AcquisitionsMax }, Whole)
	return strings.TrimSuffix(least, s.Mark()) + "–" + most
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
func (s Summary) median(value func(Run) any, write func(float64) string) string {
	f := MedianFigure(figures(s.Used, func(r Run) *Figure { return figure(value(r)) }))
	if f == nil {
		return NotKnown
	}
	return write(f.Value) + s.Mark()
}

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
		{Heading: "longest\nstall", Cell: of(func(struck []Injection) string { return longestStall(struck).String() })},
		{Heading: "over-\nlaps", Cell: total(func(s Injection) int64 { return s.Overlaps }, Whole)},
		{Heading: "overlaps\nafter expiry", Cell: total(func(s Injection) int64 { return s.Late }, Whole)},
		{Heading: "overlap\nlength", Cell: total(func(s Injection) int64 { return s.OverlapNS + s.LateNS },
			Nanoseconds.Format)},
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
