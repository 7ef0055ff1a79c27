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

// The tables, in the order of a reader's questions: speed, waits, fairness, the cost for Redis, and exclusion.
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

// Tables with a selection of figures.
const (
	PageGroup       Group = "PAGE"        // the first table of the HTML page
	ShortGroup      Group = "SHORT"       // the table that lockbench prints by default
	ShortRatioGroup Group = "SHORT RATIO" // the part of RatioGroup that is printed under SHORT
)

// Column is a column of a table. It shows its metric, or the text from Cell.
type Column struct {
	Metric
	Heading string // up to two lines
	// Shown reports whether a report has a figure for the column; nil means always.
	Shown func(*Report) bool
	// Cell writes the cell; nil means the figure in its unit.
	Cell func(Summary) string
	// Words marks a column whose cells are text, which tables align on the left.
	Words bool
}

// shows returns the column of a metric.
func shows(metric, heading string) Column {
	return Column{Metric: MustMetric(metric), Heading: heading}
}

// writes returns a column whose cells are written by cell.
func writes(heading string, cell func(Summary) string) Column {
	return Column{Heading: heading, Cell: cell}
}

// ratio returns the column that compares a metric, round by round, with that of the first strategy at the same point.
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
	return c.when(func(r *Report) bool { return several(r) && !allOf(r, Summary.isFirst) })
}

// Intervals returns how many ratios in the report's tables have a 95 % interval, and how many only a range from the
// smallest to the largest. The legend depends on it.
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

// spread returns the column with the smallest and the largest figure of several runs, of which other tables show only
// the median.
func spread(metric, heading string) Column {
	c := shows(metric, heading)
	c.Cell = func(s Summary) string { return s.spread(c.Metric) }
	unknown := func(s Summary) bool { return c.Cell(s) == NotKnown }
	return c.when(func(r *Report) bool { return several(r) && !allOf(r, unknown) })
}

// allOf reports whether is holds for all strategies of a report.
func allOf(r *Report, is func(Summary) bool) bool {
	return !slices.ContainsFunc(r.Summaries(), func(s Summary) bool { return !is(s) })
}

// when restricts a column to the reports that meet a condition.
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
	closed   = not(func(r *Report) bool { return r.Workload.Slots() })
)

// layout has the columns of the tables in their order.
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

func shown(columns []Column, r *Report) []Column {
	return slices.DeleteFunc(columns, func(c Column) bool { return c.Shown != nil && r != nil && !c.Shown(r) })
}

// Flat returns the heading in one line.
func (c Column) Flat() string { return strings.NewReplacer("-\n", "", "\n", " ").Replace(c.Heading) }

// Text returns a strategy's cell: the median or the sum of its runs, in the metric's unit. It omits the unit /s, which
// the heading contains.
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

func coalesced(r *Report) bool { return r.Workload.Coalesce }

func counted(r *Report) bool {
	return r.Workload.Work == workloads.WorkCounter || r.Workload.Work == workloads.WorkTransaction
}

func openLoop(r *Report) bool { return r.Workload.Rate > 0 }

// anyRun reports whether has is true for a run of the report.
func anyRun(has func(Run) bool) func(*Report) bool {
	return func(r *Report) bool { return slices.ContainsFunc(r.Runs, has) }
}

// passed reports whether a lock passed from client to client of several application instances.
func passed(r *Report) bool {
	return slices.ContainsFunc(r.Runs, func(run Run) bool {
		return run.Fairness.PassesWithin != nil && r.WorkloadOf(run).Instances > 1
	})
}

func not(has func(*Report) bool) func(*Report) bool {
	return func(r *Report) bool { return !has(r) }
}

// runsOf formats the number of runs, with the number of used ones if some are invalid.
func runsOf(s Summary) string {
	if s.AnyInvalid() && !s.Invalid {
		return fmt.Sprintf("%d of %d", len(s.Used), len(s.Runs))
	}
	return strconv.Itoa(len(s.Runs))
}

// waitsOf formats the median number of waits per client, which shows how well the percentiles per client are founded.
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

// Table is a title, its columns and its rows.
type Table struct {
	Title   string
	Columns []Column
	Rows    []Summary
}

// TableOf returns the table of a group.
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

// faultColumns are the columns of the fault with this index.
func faultColumns(number int, r *Report) []Column {
	of := func(runs []Run) []Injection {
		var all []Injection
		for _, run := range runs {
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

// recovery formats a quantile of the recovery times, by nearest rank. A missing recovery counts as the longest, so that
// it cannot improve the quantile.
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
