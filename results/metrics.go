package results

// Each metric is an entry of rows. Its name identifies the metric in exports, thresholds and comparisons, so the name
// must never change. The value is the field of Run at path, or the result of a function in computed, which returns nil
// if the figure is not known. An unknown figure must never become 0, because 0 is a good value of many metrics.

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Metric is a figure of a run, with everything that tables, exports, thresholds and comparisons need to know about it.
type Metric struct {
	Row
	Better   Better
	Compared *Compared // set by ComparedMetrics
	Bench    *Bench    // set by BenchMetrics

	value func(Run) any // computes a figure that is not a field of Run
}

// Row is one entry of rows, the table of metrics. Its figure is the field of Run at path or, if path is empty, the
// result of its function in computed.
type Row struct {
	Name string // wait_p99
	Unit Unit
	is   traits
	path string // Speed.PerSecond; "": see computed
	Help string // one line
}

// Compared defines how comparisons treat a metric.
type Compared struct {
	metric string
	Label  string // in words: "wait p99"
	// Resolution is the smallest meaningful value. Smaller values, including 0, count as this value, so that a ratio can
	// always be computed.
	Resolution float64
	// Count marks a count of a strategy's operations per acquisition. Such counts hardly depend on the machine, so even
	// small changes are real, and a separate threshold applies to them.
	Count bool
}

// Bench defines how a metric appears on a line in the format of Go's benchmarks.
type Bench struct {
	metric string

	Unit  string  // p99-wait-ns/op
	Scale float64 // factor from the metric's unit
	Exact bool    // the figure does not vary between runs
}

// Figure is the value of a metric, in the metric's unit.
type Figure struct {
	Value   float64 `json:"value"`
	AtLeast bool    `json:"at_least,omitempty"` // a lower bound: some of the durations had not ended
	// Digits is the number of significant digits if it is below three because a large part was
	// subtracted; otherwise 0.
	Digits int `json:"digits,omitempty"`
}

// Unit is the unit of a metric's values, and determines their format in tables.
type Unit string

// Every metric has one of these units.
const (
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "1/s"
	Percent     Unit = "percent"
	Bytes       Unit = "bytes"
	Number      Unit = "" // a count, or a ratio
)

// Better is the direction in which a metric improves.
type Better int

// Neither means that a change of the metric is neither better nor worse.
const (
	Neither Better = iota
	Lower
	Higher
)

// Of returns the metric's figure for a run; nil if it is not known.
func (m Metric) Of(r Run) *Figure {
	if m.path == "" {
		return figure(m.value(r))
	}
	field := at(r, m.path)
	if m.is&perAcq != 0 {
		// The servers' counts cover the interval between two readings of INFO, so they are divided by the acquisitions in
		// that interval.
		count, _ := field.(*int64)
		field = r.Server.Window.PerAcquisition(count)
	}
	return figure(field)
}

// shown is like Of, but for tables: it returns nil for a percentile of 99 or more if there are so few durations that it
// would be their maximum.
func (m Metric) shown(r Run) *Figure {
	path, p := m.percentile()
	if d, ok := at(r, path).(Distribution); ok && p >= 99 && !d.enough(p) {
		return nil
	}
	return m.Of(r)
}

// percentiles maps the names of Distribution's percentile fields to percentages.
var percentiles = map[string]float64{"P50": 50, "P90": 90, "P95": 95, "P99": 99, "P999": 99.9}

// percentile returns the path of the distribution and the number of the percentile if the metric is a percentile,
// otherwise "" and 0.
func (m Metric) percentile() (path string, percent float64) {
	dot := strings.LastIndex(m.path, ".")
	if percent = percentiles[m.path[dot+1:]]; percent == 0 {
		return "", 0
	}
	return m.path[:dot], percent
}

// InBench returns the metric's value for a run in the unit of Bench; false if it is not known, or only a lower bound.
func (m Metric) InBench(r Run) (float64, bool) {
	if f := m.Of(r); f != nil && !f.AtLeast {
		return f.Value * m.Bench.Scale, true
	}
	return 0, false
}

// at returns the field of a run, or of a part of it, at this path; nil if there is no such field, or if a pointer on
// the path is nil.
func at(of any, path string) any {
	v := reflect.ValueOf(of)
	for name := range strings.SplitSeq(path, ".") {
		if v = reflect.Indirect(v); v.IsValid() {
			v = v.FieldByName(name)
		}
	}
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

// figure converts a number, a *Bound, a *Figure or a pointer to a number. It returns nil for a nil pointer, which means
// that the value is not known.
func figure(value any) *Figure {
	if b, ok := value.(*Bound); ok {
		return b.figure()
	}
	if f, ok := value.(*Figure); ok {
		return f
	}
	switch v := reflect.Indirect(reflect.ValueOf(value)); {
	case v.CanInt():
		return &Figure{Value: float64(v.Int())}
	case v.CanFloat():
		return &Figure{Value: v.Float()}
	}
	return nil
}

func (b *Bound) figure() *Figure {
	if b == nil {
		return nil
	}
	return &Figure{Value: float64(b.NS), AtLeast: b.AtLeast}
}

// FindMetric returns the metric of this name; false if there is none.
func FindMetric(name string) (Metric, bool) {
	at := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if at < 0 {
		return Metric{}, false
	}
	return rows[at].metric(), true
}

// MustMetric returns the metric of this name, which must exist: otherwise it panics.
func MustMetric(name string) Metric {
	m, known := FindMetric(name)
	if !known {
		panic("results: no metric " + name)
	}
	return m
}

// metric returns the row as a Metric, whose direction follows from the row's traits.
func (r Row) metric() Metric {
	return Metric{Row: r, Better: Better(r.is & (down | up)), value: computed[r.Name]}
}

// Metrics returns all metrics in the order of exports.
func Metrics() []Metric {
	var all []Metric
	for _, r := range rows {
		all = append(all, r.metric())
	}
	return all
}

// ComparedMetrics returns the metrics that comparisons use, in the order of the comparison tables.
func ComparedMetrics() []Metric {
	var all []Metric
	for _, c := range compared {
		m := MustMetric(c.metric)
		m.Compared = &c
		all = append(all, m)
	}
	return all
}

// BenchMetrics returns the metrics that follow ns/op on a benchmark line, in their order.
func BenchMetrics() []Metric {
	var all []Metric
	for _, b := range benched {
		m := MustMetric(b.metric)
		m.Bench = &b
		all = append(all, m)
	}
	return all
}

// traits is a set of properties of a metric.
type traits int

const (
	// down and up equal the values of Better, so that Row.metric can convert them. iota also counts their two lines, so
	// whole is 1<<2 and shares no bit with them.
	down = traits(Lower)
	up   = traits(Higher)

	whole    traits = 1 << iota // a count, which tables write without decimals
	rough                       // known within a few percent, so tables write two digits
	perAcq                      // the field is a count of the servers, to be divided by the acquisitions
	summed                      // a strategy's figure is the sum of its runs, not their median: one violation is enough
	everyRun                    // a strategy's figure is known only if all its runs have one

	total = whole | summed
)

const (
	ns, rate, percent = Nanoseconds, PerSecond, Percent
	size, count       = Bytes, Number
)

// rows lists all metrics in the order of exports. Add a new metric at the end, because the order of the columns in
// exports must not change. A metric is also in tables if layout lists it, in comparisons if compared does, and on
// benchmark lines if benched does.
var rows = []Row{
	{"acquisitions", count, up | whole, "Speed.Acquisitions", "leases granted in the window"},
	{"acq_per_s", rate, up, "Speed.PerSecond", "leases granted per second"},
	{"gap", ns, down, "Speed.Gap", "time between two holds of a lock that is always waited for"},
	{"served_per_s", rate, up, "Speed.ServedPerSecond", "clients served per second, with --coalesce more than leases"},
	{"utilisation", percent, up, "", "share of the time that the lock was held"},
	{"handoff_p50", ns, down, "Speed.Handoff.P50", "start of a release → next lease, if a client waited"},
	{"handoff_p99", ns, down, "Speed.Handoff.P99", "the same"},
	{"release_p50", ns, down, "Speed.Release.P50", "start of a release → its return"},
	{"release_p99", ns, down, "Speed.Release.P99", "the same"},
	{"hold_mean", ns, 0, "Speed.Hold.MeanNS", "measured hold time: lease granted → start of the release"},
	{"hold_p50", ns, 0, "Speed.Hold.P50", "the same"},

	{"wait_p50", ns, down, "Waiting.PerAcquisition.P50", "start of an acquire → lease, every wait counting once"},
	{"wait_p90", ns, down, "Waiting.PerAcquisition.P90", "the same"},
	{"wait_p95", ns, down, "Waiting.PerAcquisition.P95", "the same"},
	{"wait_p99", ns, down, "Waiting.PerAcquisition.P99", "the same"},
	{"wait_p999", ns, down, "Waiting.PerAcquisition.P999", "the same"},
	{"wait_max", ns, down, "Waiting.PerAcquisition.Max", "longest wait"},
	{"wait_per_client_p50", ns, down | rough, "Waiting.PerClient.P50", "as wait_p50, every client counting once"},
	{"wait_per_client_p99", ns, down | rough, "Waiting.PerClient.P99", "as wait_p50, every client counting once"},
	{"start_lateness_p50", ns, down, "Waiting.Lateness.P50", "open loop: intended start → actual start, by a free client"},
	{"start_lateness_p99", ns, down, "Waiting.Lateness.P99", "the same"},
	{"waits_unfinished", count, down | whole, "", "waits open at the end, and arrivals that no client had taken"},
	{"timed_out", count, down | whole, "Waiting.TimedOut", "waits that ended at their timeout"},

	{"acq_per_client_min", count, up | whole, "Fairness.AcquisitionsMin", "acquisitions of the client with the fewest"},
	{"acq_per_client_max", count, whole, "Fairness.AcquisitionsMax", "acquisitions of the client with the most"},
	{"jain", count, up, "Fairness.Jain", "Jain's index of the acquisitions per client, 1 is even"},
	{"starved", count, down | whole | everyRun, "Fairness.Starved", "clients without an acquisition in two fair rounds"},
	{"longest_wait", ns, down, "Fairness.LongestWait", "longest wait of any client, including open waits"},
	{"working_set", count, up, "Fairness.WorkingSet", "distinct clients in as many acquisitions as there are clients"},
	{
		"reacquire_distance_p50", count, whole, "Fairness.ReacquireDistance",
		"acquisitions of a key until the same client's next one",
	},
	{"overtaken", percent, down, "Fairness.Overtaken", "acquisitions while an earlier arrival waited"},
	{"largest_bypass", count, down | whole, "Fairness.LargestBypass", "most later arrivals served before one waiter"},

	{"commands_per_acq", count, down | perAcq, "Server.Window.Calls", "commands at the servers, also inside scripts"},
	{"round_trips_per_acq", count, down | perAcq, "Server.Window.RoundTrips", "requests written to the servers"},
	{"bytes_in_per_acq", size, down, "", "bytes received by the servers; by their own count if they report it"},
	{"bytes_out_per_acq", size, down, "", "bytes sent by the servers; by their own count if they report it"},
	{"redis_cpu_per_acq", ns, down, "", "CPU time of the servers less that of idle connections; not with I/O threads"},
	{"redis_main_cpu_per_acq", ns, down, "", "with I/O threads: CPU time of the thread that executes commands"},
	{"redis_rest_cpu_per_acq", ns, down, "", "with I/O threads: CPU time of the other threads, busy waiting included"},
	{"attempts_per_acq", count, down, "Effort.Attempts", "tries to take the lock"},
	{"wake_ups_per_acq", count, down, "Effort.WakeUps", "resumptions of a parked waiter"},
	{"futile_wake_ups_per_acq", count, down, "Effort.Futile", "resumptions whose next attempt failed"},

	{"redis_cpu", percent, down, "", "CPU use of the servers, of one core"},
	{"connections", count, down | whole, "Server.Peak.Clients", "largest number of connections to the servers"},
	{"subscriptions", count, whole, "Server.Peak.Subscriptions", "largest number of channel subscriptions"},
	{"redis_memory", size, down, "Server.Peak.MemoryBytes", "largest memory use of the servers"},

	{
		"violations", count, down | total, "",
		"overlaps plus fencing tokens that are not larger than an earlier one; at least the number of broken claims",
	},
	{"overlaps", count, down | total, "", "more holders than the lock admits, leases still valid"},
	{"overlaps_after_expiry", count, down | total, "", "overlaps with a holder whose lease had expired"},
	{"fencing_regressions", count, down | total, "", "fencing tokens not larger than an earlier one"},
	{"leases_lost", count, down | total, "Safety.LostLeases", "releases that found the lease gone"},
	{"lost_updates", count, down | total, "Safety.LostUpdates", "updates lost, with --work counter or transaction"},
	{"leftovers", count, down | total, "Safety.LeftoverCount", "undeclared keys, channels and connections left behind"},
	{"hung_clients", count, down | total, "Safety.Hung", "clients that did not return from Acquire or Release"},
	{"errors", count, down | total, "", "errors of Acquire and Release, and of lockbench's own commands"},

	{"fault_injections", count, total, "", "times that a fault was injected"},
	{"fault_recovery_max", ns, down, "", "longest time from a fault to the next acquisition"},
	{"fault_stall_max", ns, down, "", "longest time after a fault in which no client obtained a lock"},
	{"lost_wake_ups", count, down | total, "", "keys that stayed free after a fault although a client waited"},

	{"wait_per_client_p90", ns, down | rough, "Waiting.PerClient.P90", "as wait_per_client_p50"},
	{"max_holders", count, down | whole, "", "largest number of simultaneous holders"},
	{"refused_updates", count, total, "Safety.Refused", "updates refused for a stale fencing token or row version"},
	{"bus_messages_per_acq", count, down | perAcq, "Server.Window.BusPublished", "messages between nodes of a cluster"},
	{"bus_bytes_per_acq", count, down | perAcq, "Server.Window.BusReceived", "bytes between the nodes of a cluster"},
	{"other_traffic", percent, 0, "Server.Whole.OtherTraffic", "bytes that the servers received from other clients"},
	{"other_cpu", percent, 0, "Generator.OtherCPU", "CPU use of other processes, of all cores"},

	{"bursts", count, whole, "Herd.Bursts", "releases of a holder for which all other clients waited"},
	{"burst_attempts", count, down, "Herd.Attempts", "attempts to take the lock that one release caused"},
	{"burst_wake_ups", count, down, "Herd.WakeUps", "waiters that one release woke"},
	{"burst_commands", count, down, "Herd.Commands", "commands at the servers that one release caused"},
	{"first_handoff_p50", ns, down, "Herd.FirstHandoff.P50", "start of the release of a burst → next lease"},
	{"drain_p50", ns, down, "Herd.Drain.P50", "release of that next lease → last client's acquisition"},
	{"drain_commands_per_acq", count, down, "Herd.DrainCommands", "commands per acquisition while the herd drained"},
	{"drain_cpu_max", percent, down, "Herd.PeakCPU", "CPU use of the servers, of one core, in the costliest drain"},

	{"service_p99", ns, down, "Waiting.Service.P99", "start of an acquire → lease, always from the actual start"},
	{
		"client_cpu_per_acq", ns, down, "",
		"CPU time of lockbench, including clients, drivers and its own measurement",
	},
	{"driver_cpu_per_acq", ns, down, "", "CPU time of the processes in which drivers run the clients"},
	{"wal_bytes_per_acq", size, down | perAcq, "Server.Window.WALBytes", "bytes added to PostgreSQL's write-ahead log"},
	{
		"passes_within_instance", percent, 0, "Fairness.PassesWithin",
		"passes of the lock between clients of the same instance",
	},
	{"stall", ns, down, "Speed.Stall", "longest time in which a lock was free although clients waited"},
	{"generator_stood_still", ns, down, "Generator.StoodStill", "longest time in which lockbench itself did not run"},
}

// computed maps the name of each metric that is not a field of Run to its function, which returns nil if the figure is
// not known.
var computed = map[string]func(Run) any{
	"utilisation":      func(r Run) any { return r.Speed.Utilisation * 100 },
	"waits_unfinished": func(r Run) any { return r.Waiting.Open + r.Waiting.Backlog },
	"bytes_in_per_acq": func(r Run) any {
		// If the servers report no count, the bytes that the clients sent are used instead.
		d := cmp.Or(r.Server.Window, &ServerDelta{})
		return d.PerAcquisition(cmp.Or(d.BytesIn, d.ClientBytesOut))
	},
	"bytes_out_per_acq": func(r Run) any {
		d := cmp.Or(r.Server.Window, &ServerDelta{})
		return d.PerAcquisition(cmp.Or(d.BytesOut, d.ClientBytesIn))
	},
	"redis_cpu":              func(r Run) any { return r.Server.Window.CPUPercent() },
	"redis_cpu_per_acq":      func(r Run) any { all, _, _ := r.Server.Window.cpu(); return all },
	"redis_main_cpu_per_acq": func(r Run) any { _, main, _ := r.Server.Window.cpu(); return main },
	"redis_rest_cpu_per_acq": func(r Run) any { _, _, rest := r.Server.Window.cpu(); return rest },
	"client_cpu_per_acq":     clientCPU,
	"driver_cpu_per_acq":     driverCPU,
	"violations": func(r Run) any {
		n := max(r.Safety.Overlaps+r.Safety.FencingRegression, int64(len(r.Safety.Broken)))
		// Without a complete audit, a count of 0 is not certain. A violation that was found is certain in any case.
		if n == 0 && r.unaudited() {
			return nil
		}
		return n
	},
	"overlaps": seen(func(s Safety) int64 { return s.Overlaps }, 0),
	"overlaps_after_expiry": func(r Run) any {
		// With several generators, overlaps between leases of different ones may have been missed, so a count of 0 is not
		// certain.
		if n := r.Safety.ExpiredOverlaps; n > 0 || r.Record.Generators <= 1 {
			return n
		}
		return nil
	},
	"max_holders":         seen(func(s Safety) int64 { return int64(s.MaxHolders) }, 1),
	"fencing_regressions": regressions,
	"errors": func(r Run) any {
		var sum int64
		for _, e := range r.Errors {
			sum += e.Count
		}
		return sum
	},
	"fault_injections": func(r Run) any { return r.faultSum(func(Injection) int64 { return 1 }) },
	"lost_wake_ups":    func(r Run) any { return r.faultSum(func(s Injection) int64 { return s.LostWakeUps }) },
	"fault_stall_max":  func(r Run) any { return longestStall(r.injections()) },
	"fault_recovery_max": func(r Run) any {
		return longest(r.injections(), func(s Injection) *Bound { return s.recovery(r.WindowNS) })
	},
}

// seen returns a function that reads a count of the audit. If there are several generators and their leases were not
// compared, a count of at most least counts as unknown.
func seen(of func(Safety) int64, least int64) func(Run) any {
	return func(r Run) any {
		if n := of(r.Safety); n > least || !r.apart() {
			return n
		}
		return nil
	}
}

// clientCPU returns the CPU time per acquisition, in nanoseconds, of the generator and its drivers. It is unknown
// without acquisitions, if the system does not report it, or if the window was too short for the servers' counters.
func clientCPU(r Run) any {
	seconds := r.Generator.CPUSeconds
	if drivers := r.Generator.DriverCPUSeconds; drivers != nil {
		seconds += *drivers
	}
	return r.cpuPerAcquisition(seconds)
}

// driverCPU returns the drivers' part of clientCPU; unknown without drivers.
func driverCPU(r Run) any {
	if r.Generator.DriverCPUSeconds == nil {
		return nil
	}
	return r.cpuPerAcquisition(*r.Generator.DriverCPUSeconds)
}

// cpuPerAcquisition returns a CPU time per acquisition in nanoseconds. It divides by the acquisitions between the
// readings of the servers' counters or, without such counters, by those in the window. It returns nil without
// acquisitions or CPU time, and if the counters cover only the whole run.
func (r Run) cpuPerAcquisition(seconds float64) any {
	acquisitions := r.Speed.Acquisitions
	if window := r.Server.Window; window != nil {
		acquisitions = window.Acquisitions // between the same two instants
	} else if r.Server.Whole != nil {
		return nil
	}
	if acquisitions == 0 || seconds == 0 {
		return nil
	}
	return seconds * 1e9 / float64(acquisitions)
}

// regressions returns the number of fencing tokens that are not larger than an earlier one of the same key. It is
// unknown if no lease has a token, or if none was found but the tokens of different generators were not compared.
func regressions(r Run) any {
	if r.Safety.FencedLeases == 0 && r.Speed.Acquisitions > 0 || r.apart() && r.Safety.FencingRegression == 0 {
		return nil
	}
	return r.Safety.FencingRegression
}

func (r Run) injections() []Injection {
	var all []Injection
	for _, f := range r.Faults {
		all = append(all, f.Injections...)
	}
	return all
}

// faultSum sums a count over the injections of all faults; it is unknown without faults.
func (r Run) faultSum(count func(Injection) int64) any {
	if len(r.Faults) == 0 {
		return nil
	}
	var sum int64
	for _, s := range r.injections() {
		sum += count(s)
	}
	return sum
}

// recovery returns the time to recovery in nanoseconds. Without a recovery it returns the time from the injection to
// the end of the window, as a lower bound.
func (s Injection) recovery(window int64) *Bound {
	if s.RecoveryNS == nil {
		return &Bound{NS: max(0, window-s.AtNS), AtLeast: true}
	}
	return &Bound{NS: *s.RecoveryNS}
}

// longestStall returns the longest Stall of the injections; nil if none is known.
func longestStall(injections []Injection) *Bound {
	return longest(injections, func(s Injection) *Bound { return s.Stall })
}

// longest calls of for each injection and returns the longest time; nil if none is known.
func longest(injections []Injection, of func(Injection) *Bound) *Bound {
	var all []*Bound
	for _, s := range injections {
		all = append(all, of(s))
	}
	return Longest(all...)
}

// compared lists the metrics that comparisons test, in the order of the comparison tables.
var compared = []Compared{
	{"acq_per_s", "acquisitions", 0.01, false},
	{"utilisation", "utilisation", 0.1, false},
	{"wait_p50", "wait p50", 1, false},
	{"wait_p99", "wait p99", 1, false},
	{"handoff_p50", "handoff p50", 1, false},
	{"handoff_p99", "handoff p99", 1, false},
	{"release_p50", "release p50", 1, false},
	{"redis_cpu_per_acq", "server CPU per acq", 1, false},
	{"jain", "Jain index", 0.001, false},
	{"starved", "starved clients", 1, false},
	{"commands_per_acq", "commands per acq", 0.01, true},
	{"round_trips_per_acq", "round trips per acq", 0.01, true},
	{"bytes_in_per_acq", "bytes in per acq", 0.01, true},
	{"bytes_out_per_acq", "bytes out per acq", 0.01, true},
	{"attempts_per_acq", "attempts per acq", 0.01, true},
	{"wake_ups_per_acq", "wake-ups per acq", 0.01, true},
	{"futile_wake_ups_per_acq", "futile wake-ups per acq", 0.01, true},
}

// benched lists the metrics that follow ns/op on a benchmark line, in this order.
var benched = []Bench{
	{"wait_p99", "p99-wait-ns/op", 1, false},
	{"acq_per_s", "acq/s", 1, false},
	{"jain", "jain-pct", 100, false},
	{"redis_cpu_per_acq", "redis-cpu-ns/op", 1, false},
	{"violations", "violations", 1, true},
	{"commands_per_acq", "commands/op", 1, false},
	{"round_trips_per_acq", "round-trips/op", 1, false},
	{"wake_ups_per_acq", "wake-ups/op", 1, false},
}
