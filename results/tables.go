package results

// A Group is a table, and layout lists its columns. A Column turns the Summary of a strategy into the plain text of a
// cell. The writers of terminal tables, Markdown and HTML only arrange these texts. To show a metric in a table, add a
// line to layout.
//
// A table has a row for each strategy or, in a sweep, for each strategy at each point. Column.Shown leaves out columns
// that do not apply to a report or would repeat other tables.

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

// These tables answer a reader's questions in this order: speed, waits, fairness, the cost for Redis, and exclusion.
const (
	SpeedGroup    Group = "SPEED"
	RatioGroup    Group = "RATIO to the first" // each strategy relative to the first, round by round
	HerdGroup     Group = "HERD one release"
	WaitingGroup  Group = "WAITING time"
	FairnessGroup Group = "FAIRNESS"
	MixedGroup    Group = "MIXED" // a row for each part of a mixed strategy
	CostGroup     Group = "COST per acquisition"
	LoadGroup     Group = "LOAD on the servers"
	SpreadGroup   Group = "SPREAD min–max" // the smallest and the largest figure of the rounds
	SafetyGroup   Group = "SAFETY"
)

// Groups returns the tables of the full report in their order.
func Groups() []Group {
	return []Group{
		SpeedGroup, RatioGroup, HerdGroup, WaitingGroup, FairnessGroup, MixedGroup, CostGroup, LoadGroup, SpreadGroup,
		SafetyGroup,
	}
}

// These tables show a selection of the figures of the other groups.
const (
	PageGroup       Group = "PAGE"        // the first table of the HTML page
	ShortGroup      Group = "SHORT"       // the table that lockbench prints by default
	ShortRatioGroup Group = "SHORT RATIO" // the part of RatioGroup that is printed under SHORT
)

// Column is a column of a table. It shows its metric, or the text from Cell.
type Column struct {
	Metric
	Heading string // up to two lines
	// Shown reports whether the tables of a report have this column; nil means always.
	Shown func(*Report) bool
	// Cell returns the text of a strategy's cell; nil means that the cell shows the metric in its unit.
	Cell func(Summary) string
	// Words marks a column whose cells are text, which tables align on the left.
	Words bool
}

// shows returns a column that shows a metric in its unit.
func shows(metric, heading string) Column {
	return Column{Metric: MustMetric(metric), Heading: heading}
}

// writes returns a column without a metric. The function cell returns the text of each cell.
func writes(heading string, cell func(Summary) string) Column {
	return Column{Heading: heading, Cell: cell}
}

// ratio returns a column with the ratio of a strategy's metric to that of the first strategy at the same point,
// computed round by round.
func ratio(metric, heading string) Column {
	c := shows(metric, heading)
	c.Cell = func(s Summary) string {
		if s.isFirst() {
			return "1"
		}
		ratio := s.Against(*s.first, c.Metric)
		switch {
		case ratio == nil:
			return NotKnown
		case ratio.Interval || s.rounds < intervalRounds: // with fewer rounds the legend states that no ratio has an interval
			return ratio.String()
		}
		return ratio.ofRounds()
	}
	// The column is left out with one round, because a ratio then has no range, and with one strategy at each point,
	// because each cell would be 1.
	return c.when(func(r *Report) bool { return several(r) && !allOf(r, Summary.isFirst) })
}

// Intervals returns how many ratios in the report's tables have a 95 % interval, and how many have only the range from
// the smallest to the largest ratio. The legend of the tables depends on these numbers.
func (r *Report) Intervals() (intervals, others int) {
	for _, s := range r.Summaries() {
		for _, c := range layout[RatioGroup] {
			switch ratio := s.Against(*s.first, c.Metric); {
			case ratio == nil || s.isFirst():
			case ratio.Interval:
				intervals++
			default:
				others++
			}
		}
	}
	return intervals, others
}

// spread returns a column with the smallest and the largest figure of a strategy's runs. Other tables show only their
// median.
func spread(metric, heading string) Column {
	c := shows(metric, heading)
	c.Cell = func(s Summary) string { return s.spread(c.Metric) }
	// With one round, both figures would equal the one that the other tables show.
	unknown := func(s Summary) bool { return c.Cell(s) == NotKnown }
	return c.when(func(r *Report) bool { return several(r) && !allOf(r, unknown) })
}

// allOf reports whether all strategies of a report meet the condition.
func allOf(r *Report, is func(Summary) bool) bool {
	return !slices.ContainsFunc(r.Summaries(), func(s Summary) bool { return !is(s) })
}

// when returns the column restricted to reports that meet a condition.
func (c Column) when(shown func(*Report) bool) Column {
	c.Shown = shown
	return c
}

var (
	claims = Column{Heading: "claims", Words: true, Cell: Summary.Verdict}

	several  = func(r *Report) bool { return r.Rounds > 1 }
	threaded = anyRun(func(r Run) bool { return r.Server.Window.threaded() })
	refused  = anyRun(func(r Run) bool { return r.Safety.Refused != nil })
	driven   = anyRun(func(r Run) bool { return r.Generator.DriverCPUSeconds != nil })
	mixed    = anyRun(func(r Run) bool { return len(r.Parts) > 0 })
	herd     = anyRun(func(r Run) bool { return r.Herd != nil })
	alone    = not(coalesced) // a gap is per lease, and with --coalesce clients share leases
	// In an open loop, clients are only slots for arrivals.
	closed = not(func(r *Report) bool { return r.Workload.Slots() })
)

// layout lists the columns of each table from left to right. A column with a condition is shown only in reports that
// meet it.
var layout = map[Group][]Column{
	SpeedGroup: {
		writes("runs", runsOf).when(several),
		shows("acq_per_s", "acq/s"),
		shows("gap", "gap").when(alone),
		shows("served_per_s", "served/s").when(coalesced),
		shows("utilisation", "utili-\nsation"),
		shows("hold_mean", "hold\nmean"),
		shows("handoff_p50", "handoff\np50"),
		shows("handoff_p99", "handoff\np99"),
		shows("passes_within_instance", "in one\nprocess").when(passed),
		shows("release_p50", "release\np50"),
	},
	RatioGroup: {
		ratio("acq_per_s", "acq/s"),
		ratio("wait_per_client_p99", "wait p99\nper client"),
		ratio("commands_per_acq", "commands\nper acq"),
		ratio("redis_cpu_per_acq", "server CPU\nper acq"),
	},
	HerdGroup: {
		shows("bursts", "bursts").when(herd),
		shows("burst_attempts", "attempts").when(herd),
		shows("burst_wake_ups", "wake-ups").when(herd),
		shows("burst_commands", "commands").when(herd),
		shows("first_handoff_p50", "first\nhandoff").when(herd),
		shows("drain_p50", "drain\np50").when(herd),
		shows("drain_commands_per_acq", "commands\nper acq").when(herd),
		shows("drain_cpu_max", "peak\nCPU").when(herd),
	},
	WaitingGroup: {
		shows("wait_p50", "per acq\np50"),
		shows("wait_p99", "per acq\np99"),
		shows("wait_max", "per acq\nmax"),
		shows("wait_per_client_p50", "per client\np50"),
		shows("wait_per_client_p99", "per client\np99"),
		writes("waits per\nclient", waitsOf),
		shows("waits_unfinished", "unfinished"),
		shows("timed_out", "timed\nout"),
		shows("start_lateness_p99", "starts\nlate p99").when(openLoop),
	},
	FairnessGroup: {
		shows("acq_per_client_min", "fewest\nacq").when(closed),
		shows("acq_per_client_max", "most\nacq").when(closed),
		shows("jain", "Jain\nindex"),
		shows("starved", "starved\nclients").when(closed),
		shows("longest_wait", "longest\nwait"),
		shows("working_set", "working\nset"),
		shows("reacquire_distance_p50", "reacquire\ndistance"),
		shows("overtaken", "overtaken"),
		shows("largest_bypass", "largest\nbypass"),
	},
	MixedGroup: {
		writes("clients", clientsOf).when(mixed),
		shows("acquisitions", "acqui-\nsitions").when(mixed),
		writes("share", shareOf).when(mixed),
		shows("wait_p50", "wait\np50").when(mixed),
		shows("wait_p99", "wait\np99").when(mixed),
		shows("overtaken", "overtaken").when(mixed),
	},
	CostGroup: {
		shows("commands_per_acq", "commands"),
		shows("round_trips_per_acq", "round\ntrips"),
		shows("bytes_in_per_acq", "bytes\nin"),
		shows("bytes_out_per_acq", "bytes\nout"),
		shows("redis_cpu_per_acq", "server\nCPU").when(not(threaded)),
		shows("redis_main_cpu_per_acq", "main\nthread").when(threaded),
		shows("redis_rest_cpu_per_acq", "other\nthreads").when(threaded),
		shows("attempts_per_acq", "attempts"),
		shows("wake_ups_per_acq", "wake-ups"),
		shows("futile_wake_ups_per_acq", "futile\nwake-ups"),
		shows("driver_cpu_per_acq", "driver\nCPU").when(driven),
	},
	LoadGroup: {
		shows("redis_cpu", "CPU of\none core"),
		shows("connections", "connections\npeak"),
		shows("subscriptions", "subscriptions\npeak"),
		shows("redis_memory", "memory\npeak"),
		shows("other_traffic", "other clients'\ntraffic"),
	},
	SpreadGroup: {
		spread("acq_per_s", "acq/s"),
		spread("handoff_p50", "handoff\np50"),
		spread("redis_cpu_per_acq", "server CPU\nper acq"),
		spread("redis_cpu", "server CPU\nof one core"),
		spread("other_cpu", "other CPU\nof all"),
	},
	SafetyGroup: {
		claims,
		shows("overlaps", "overlaps"),
		shows("overlaps_after_expiry", "overlaps\nafter\nexpiry"),
		shows("lost_updates", "updates\nlost").when(counted),
		shows("refused_updates", "updates\nrefused").when(refused),
		shows("fencing_regressions", "fencing\nbroken"),
		shows("leases_lost", "leases\nlost"),
		shows("leftovers", "leftovers"),
		shows("hung_clients", "clients\nhung"),
		shows("errors", "errors"),
	},
	PageGroup: {
		writes("runs", runsOf),
		shows("acq_per_s", "acq/s"),
		shows("gap", "gap"),
		shows("utilisation", "held"),
		shows("wait_p50", "wait p50"),
		shows("wait_p99", "wait p99"),
		shows("wait_per_client_p99", "p99 per client"),
		shows("starved", "starved"),
		shows("handoff_p50", "handoff p50"),
		shows("commands_per_acq", "commands"),
		shows("redis_cpu_per_acq", "server CPU"),
		claims,
	},
	ShortGroup: {
		shows("acq_per_s", "acq/s"),
		shows("gap", "gap").when(alone),
		shows("served_per_s", "served/s").when(coalesced),
		shows("handoff_p50", "handoff\np50"),
		shows("wait_per_client_p99", "wait p99\n/client"),
		shows("starved", "starved").when(closed),
		shows("commands_per_acq", "cmds\n/acq"),
		shows("redis_cpu_per_acq", "CPU\n/acq"),
		claims,
	},
	ShortRatioGroup: {
		ratio("acq_per_s", "acq/s"),
		ratio("wait_per_client_p99", "wait p99\nper client"),
		ratio("redis_cpu_per_acq", "server CPU\nper acq"),
	},
}

// Columns returns the columns of a group for which a report has figures; all columns if the report is nil.
func Columns(g Group, r *Report) []Column { return shown(slices.Clone(layout[g]), r) }

// shown removes the columns that do not apply to a report. It changes the slice that it is given.
func shown(columns []Column, r *Report) []Column {
	return slices.DeleteFunc(columns, func(c Column) bool { return c.Shown != nil && r != nil && !c.Shown(r) })
}

// Flat returns the heading in one line, with hyphenated words joined.
func (c Column) Flat() string { return strings.NewReplacer("-\n", "", "\n", " ").Replace(c.Heading) }

// Text returns the text of a strategy's cell: the result of Cell or, without Cell, the median or the sum of the runs in
// the metric's unit. It omits the unit /s, which the heading contains.
func (c Column) Text(s Summary) string {
	if c.Cell != nil {
		return c.Cell(s)
	}
	text := strings.TrimSuffix(s.text(c.Metric, usualDigits), "/s")
	if text == NotKnown || c.is&summed != 0 { // a single violation counts, even in an invalid run
		return text
	}
	return text + s.Mark()
}

// coalesced reports whether clients may share a lease, so that there may be more clients served than leases granted.
func coalesced(r *Report) bool { return r.Workload.Coalesce }

// counted reports whether the holder's work updates a counter or a row, so that updates can be lost.
func counted(r *Report) bool {
	return r.Workload.Work == workloads.WorkCounter || r.Workload.Work == workloads.WorkTransaction
}

// openLoop reports whether clients arrive at a rate that does not depend on the lock.
func openLoop(r *Report) bool { return r.Workload.Rate > 0 }

// anyRun returns a condition for when: at least one run of the report satisfies has.
func anyRun(has func(Run) bool) func(*Report) bool {
	return func(r *Report) bool { return slices.ContainsFunc(r.Runs, has) }
}

// passed reports whether the share of passes within an instance is known for any run with several application
// instances.
func passed(r *Report) bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Fairness.PassesWithin != nil && r.WorkloadOf(run).Instances > 1
	})
}

func not(has func(*Report) bool) func(*Report) bool {
	return func(r *Report) bool { return !has(r) }
}

// runsOf formats the number of runs, as "2 of 3" if the figures use only some of them.
func runsOf(s Summary) string {
	if s.AnyInvalid() && !s.Invalid {
		return fmt.Sprintf("%d of %d", len(s.Used), len(s.Runs))
	}
	return strconv.Itoa(len(s.Runs))
}

// waitsOf formats the median number of waits per client. With more waits, the percentiles per client are more reliable.
func waitsOf(s Summary) string {
	waits := MedianFigure(figures(s.Used, func(r Run) *Figure {
		if r.Waiting.PerClient.P50 == nil {
			return nil
		}
		return &Figure{Value: float64(r.Waiting.PerClient.Count) / float64(s.Workload.Clients)}
	}))
	if waits == nil {
		return NotKnown
	}
	return Short(waits.Value) + s.Mark()
}

// Table is one table of a report, with a row for each strategy.
type Table struct {
	Title   string
	Columns []Column
	Rows    []Summary
}

// TableOf returns the table of a group with its columns and rows for a report.
func TableOf(g Group, r *Report) Table {
	t := Table{string(g), Columns(g, r), r.Summaries()}
	if g == MixedGroup {
		t.Rows = r.partSummaries()
	}
	return t
}

// partSummaries returns the parts of the mixed strategies as separate strategies, so that tables can show them. They
// have only the figures of MixedGroup.
func (r *Report) partSummaries() []Summary {
	mixed := map[string]bool{}
	for _, run := range r.Runs {
		if len(run.Parts) > 0 {
			mixed[run.Strategy] = true
		}
	}
	parts := Report{Workload: r.Workload, Points: r.Points}
	for _, s := range r.Summaries() {
		for _, run := range s.Runs {
			for _, p := range run.Parts {
				part := Run{
					Strategy: p.Strategy, Point: run.Point, Parts: []Part{p},
					Invalid: run.Invalid, Failure: run.Failure, Partial: run.Partial,
				}
				// Two mixed strategies may have the same part, which then needs two rows.
				if len(mixed) > 1 {
					part.Strategy += inMixed + run.Strategy
				}
				part.Speed.Acquisitions = p.Acquisitions
				part.Waiting.PerAcquisition, part.Fairness.Overtaken = p.Waits, p.Overtaken
				parts.Runs = append(parts.Runs, part)
			}
		}
	}
	return parts.Summaries()
}

// inMixed stands between the names of a part and of its strategy, if a report has several mixed strategies.
const inMixed = " in "

// clientsOf and shareOf need a summary from partSummaries, each of whose runs has exactly one part.
func clientsOf(s Summary) string { return Whole(float64(s.Runs[0].Parts[0].Clients)) }

func shareOf(s Summary) string {
	share := MedianFigure(figures(s.Used, func(r Run) *Figure { return figure(r.Parts[0].Share) }))
	if share == nil {
		return NotKnown
	}
	return share.in(Percent, usualDigits) + s.Mark()
}

// FaultTables returns one table for each fault of the workload. A number distinguishes faults of the same name.
func (r *Report) FaultTables() []Table {
	var tables []Table
	seen := map[string]int{}
	for i, fault := range r.Workload.Faults {
		title := "FAULT " + fault.Name
		if seen[fault.Name]++; seen[fault.Name] > 1 {
			title += fmt.Sprintf(" #%d", seen[fault.Name])
		}
		tables = append(tables, Table{title, faultColumns(i, r), r.Summaries()})
	}
	return tables
}

// faultColumns returns the columns of the table about the fault at this index of the workload.
func faultColumns(number int, r *Report) []Column {
	of := func(runs []Run) []Injection {
		var all []Injection
		for _, run := range runs {
			// A failed run may have no records of faults.
			if number < len(run.Faults) {
				all = append(all, run.Faults[number].Injections...)
			}
		}
		return all
	}
	each := func(heading string, write func([]Injection) string) Column {
		return writes(heading, func(s Summary) string { return write(of(s.Runs)) })
	}
	total := func(heading string, count func(Injection) int64, write func(float64) string) Column {
		return each(heading, func(injections []Injection) string {
			// If the fault was never injected, its counts are unknown, not 0.
			if len(injections) == 0 {
				return NotKnown
			}
			var sum int64
			for _, one := range injections {
				sum += count(one)
			}
			return write(float64(sum))
		})
	}
	// The median of the recovery times uses only the runs that the figures use. The maxima and counts use all runs,
	// because an invalid run does not excuse a broken lock.
	return shown([]Column{
		each("struck", func(all []Injection) string { return Whole(float64(len(all))) }),
		writes("recovery\np50", func(s Summary) string { return recovery(of(s.Used), 0.5) }),
		each("recovery\nlongest", func(all []Injection) string { return recovery(all, 1) }),
		each("longest\nstall", func(all []Injection) string { return longestStall(all).String() }),
		total("over-\nlaps", func(i Injection) int64 { return i.Overlaps }, Whole),
		total("overlaps\nafter expiry", func(i Injection) int64 { return i.Late }, Whole),
		total("overlap\nlength", func(i Injection) int64 { return i.OverlapNS + i.LateNS }, Nanoseconds.Format),
		shows("lost_updates", "updates\nlost").when(counted), // of the whole run
		total("wake-ups\nlost", func(i Injection) int64 { return i.LostWakeUps }, Whole),
	}, r)
}

// never is the text for an injection without a recovery in the window.
const never = "never"

// recovery formats a quantile of the recovery times, determined by nearest rank. An injection without a recovery counts
// as the longest time, so that it cannot lower the quantile.
func recovery(injections []Injection, quantile float64) string {
	if len(injections) == 0 {
		return NotKnown
	}
	after := func(i Injection) int64 {
		if i.RecoveryNS == nil {
			return math.MaxInt64
		}
		return *i.RecoveryNS
	}
	slices.SortStableFunc(injections, func(a, b Injection) int { return cmp.Compare(after(a), after(b)) })
	at := injections[int(math.Ceil(quantile*float64(len(injections))))-1]
	if at.RecoveryNS == nil {
		return never
	}
	return Nanoseconds.Format(float64(*at.RecoveryNS))
}
