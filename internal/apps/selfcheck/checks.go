package selfcheck

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

const (
	// longEnough is the length from which the audit must find every overlap.
	longEnough = 100 * time.Microsecond
	enough     = 50 // overlaps that the check needs
	// overlapOff is the permitted error of the audit's overlapped time, in percent.
	overlapOff = 2.0
)

// audit runs a lock that often admits a second client. The number and the length of the overlaps are known in
// two more ways: the lock counts them, and the instants of the clients' leases show them. If it is not
// rigged, the same lock must have no overlaps.
func (s *session) audit(ctx context.Context, c *Check) error {
	w := workload(8, 4, s.Effort.Window)
	_ = w.Hold.UnmarshalText([]byte("uniform:1ms,4ms")) // a valid constant
	lock, seen := &queue{doubling: true}, &records{}
	job := s.job(lock.strategy(), w)
	job.Observer = seen
	run, err := s.do(ctx, "audit: a lock that lets in two", job)
	if err != nil {
		return err
	}
	var long int64
	var total time.Duration
	found := overlaps(seen.all)
	for _, o := range found {
		if total += o; o >= longEnough {
			long++
		}
	}
	if long < enough {
		c.unsure("only %d overlaps of %v and more: too few", long, longEnough)
	}
	let, audited := lock.twice, run.Safety.Overlaps
	c.inform("times the lock let in a second one", float64(let), results.Number)
	c.count(int64(len(found)) <= let, "overlaps by the clients' own instants", float64(len(found)), "at most as many")
	c.inform("of 100 µs and more", float64(long), results.Number)
	// A client may not run between the end of its recorded hold and its call of Release: the audit
	// finds an overlap then that the instants do not show.
	c.count(audited >= long && audited <= let, "found by the audit", float64(audited),
		"at least %d, at most %d", long, let)
	off := (float64(run.Safety.OverlapNS)/float64(total) - 1) * 100
	c.want(near(off, 0, overlapOff), "overlapped time off the instants'", off, results.Percent,
		"within %v %%", overlapOff)
	c.count(len(run.Safety.Broken) == 1, "claims found broken", float64(len(run.Safety.Broken)), "1")

	honest := &records{}
	job = s.job((&queue{}).strategy(), w)
	job.Observer = honest
	if run, err = s.do(ctx, "audit: the same lock, letting in one", job); err != nil {
		return err
	}
	audited = run.Safety.Overlaps + run.Safety.ExpiredOverlaps
	c.count(audited == 0, "honest lock: found by the audit", float64(audited), "0")
	c.inform("honest lock: acquisitions", float64(len(honest.all)), results.Number)
	return nil
}

// overlaps returns how long two leases were held at once, from the instants alone. There are never more than
// two holders.
func overlaps(acquired []engine.Acquisition) []time.Duration {
	ordered := slices.Clone(acquired)
	slices.SortFunc(ordered, func(a, b engine.Acquisition) int { return cmp.Compare(a.Granted, b.Granted) })
	var found []time.Duration
	for i := 1; i < len(ordered); i++ {
		before, after := ordered[i-1], ordered[i]
		if both := min(before.Released, after.Released) - after.Granted; both > 0 {
			found = append(found, time.Duration(both))
		}
	}
	return found
}

// records is an Observer that keeps every acquisition.
type records struct {
	mu  sync.Mutex
	all []engine.Acquisition
}

// Holding does nothing.
func (r *records) Holding(int) {}

// Releasing does nothing.
func (r *records) Releasing(int) {}

// Acquired keeps the acquisition.
func (r *records) Acquired(a engine.Acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, a)
}

// readings is how many readings' bytes the byte counts may differ by: one side counts the readings at both
// ends and the other does not yet.
const readings = 4

// outside reads the server's INFO before and after a run, over its own connection and with its own code. The
// run must report the difference. On a user's server it may report more, because others may use it.
func (s *session) outside(ctx context.Context, c *Check) error {
	v, err := contender()
	if err != nil {
		return err
	}
	nodes, err := s.server.Clients(ctx, engine.Prefix+s.id+":outside", 1, nil)
	if err != nil {
		return fmt.Errorf("connect to look from outside: %w", err)
	}
	client := nodes[0].Client
	defer func() { _ = client.Close() }()

	w := workload(50, 5, s.Effort.Window)
	w.Hold = workloads.Fixed(100 * time.Microsecond)
	before, size, err := look(ctx, client)
	if err != nil {
		return err
	}
	run, err := s.do(ctx, "outside: "+v.Name(), s.job(v, w))
	if err != nil {
		return err
	}
	after, _, err := look(ctx, client)
	if err != nil {
		return err
	}
	whole := run.Server.Whole
	if whole == nil || whole.Commands == nil || whole.BytesIn == nil || whole.BytesOut == nil {
		c.unsure("the server does not report what it counts")
		return nil
	}

	want := c.want
	if s.server.Describe().Source == "address" {
		c.inform("bytes received from others", value(whole.OtherTraffic), results.Percent)
		want = c.hope
	}
	var seen, told, apart float64
	for command := range after {
		name, counts := strings.CutPrefix(command, "cmdstat_")
		if !counts || name == "info" { // both sides use INFO
			continue
		}
		outside, inside := after[command]-before[command], float64(whole.Commands[name])
		seen += outside
		told += inside
		apart += math.Abs(outside - inside)
	}
	c.inform("commands seen from outside, but INFO", seen, results.Number)
	want(told > 0 && apart == 0, "commands told otherwise in the report", apart, results.Number, "0")
	for _, bytes := range []struct {
		name, field string
		told        *int64
	}{
		{"received", "total_net_input_bytes", whole.BytesIn},
		{"sent", "total_net_output_bytes", whole.BytesOut},
	} {
		outside := after[bytes.field] - before[bytes.field]
		c.inform("bytes "+bytes.name+" by Redis, from outside", outside, results.Bytes)
		told := float64(*bytes.told)
		want(near(told, outside, readings*size), "left out by the report", outside-told, results.Bytes,
			"at most %d looks at INFO", readings)
	}
	return nil
}

// look reads the numbers in INFO: for a command its calls, otherwise the field's value. size is the length of
// the reply in bytes.
func look(ctx context.Context, client goredis.Client) (numbers map[string]float64, size float64, err error) {
	text, err := client.Info(ctx, "all").Result()
	if err != nil {
		return nil, 0, fmt.Errorf("look from outside: %w", err)
	}
	numbers = map[string]float64{}
	for field, value := range replies.ParseInfo(text) {
		value, _, _ = strings.Cut(strings.TrimPrefix(value, "calls="), ",")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			numbers[field] = n
		}
	}
	return numbers, float64(len(text)), nil
}

// The clients of the fairness checks, and the number of those that starve: all clients of one instance.
const (
	crowd, crowdInstances = 30, 10
	starving              = crowd / crowdInstances
)

// order runs a lock that serves the first to come, and one that serves the newest. The report must show that
// the one lets nobody overtake, and that with the other nearly every acquisition overtakes.
func (s *session) order(ctx context.Context, c *Check) error {
	w := workload(crowd, crowdInstances, s.Effort.Window)
	w.Hold = workloads.Fixed(200 * time.Microsecond)
	fair, err := s.do(ctx, "order: first come, first served", s.job((&queue{}).strategy(), w))
	if err != nil {
		return err
	}
	last, err := s.do(ctx, "order: the newest first", s.job((&queue{newest: true}).strategy(), w))
	if err != nil {
		return err
	}
	// Two clients may swap places between the start of a wait and the queue.
	overtaken := value(fair.Fairness.Overtaken)
	c.want(overtaken <= 5, "first come: overtaken", overtaken, results.Percent, "at most 5 %%")
	bypass := value(fair.Fairness.LargestBypass)
	c.count(bypass < crowd, "first come: largest bypass", bypass, "below %d", crowd)
	overtaken = value(last.Fairness.Overtaken)
	c.want(overtaken >= 95, "newest first: overtaken", overtaken, results.Percent, "at least 95 %%")
	bypass = value(last.Fairness.LargestBypass)
	c.count(bypass >= float64(last.Speed.Acquisitions/2), "newest first: largest bypass", bypass,
		"at least half of all %d acquisitions", last.Speed.Acquisitions)
	return nil
}

// starvation runs a first-come-first-served lock twice. In the second run the lock never serves one of the ten
// instances. All figures of fairness must distinguish the two runs, and have the values that arithmetic gives.
func (s *session) starvation(ctx context.Context, c *Check) error {
	w := workload(crowd, crowdInstances, s.Effort.Window)
	w.Hold = workloads.Fixed(200 * time.Microsecond)
	w.Warmup = workloads.Duration(s.Effort.Window / 10) // so that a starved wait began before the window
	starved, err := s.do(ctx, "starvation: one client in ten never gets the lock",
		s.job((&queue{starving: true}).strategy(), w))
	if err != nil {
		return err
	}
	fed, err := s.do(ctx, "starvation: everybody gets it", s.job((&queue{}).strategy(), w))
	if err != nil {
		return err
	}
	const others, even = crowd - starving, float64(crowd-starving) / crowd
	window, all := float64(starved.WindowNS), starved.Speed.Acquisitions
	beyond := func(b *results.Bound) bool { return b != nil && b.AtLeast && float64(b.NS) >= window }
	f, p95, open := starved.Fairness, starved.Waiting.PerClient.P95, starved.Waiting.Open
	overtaken, longest := value(f.Overtaken), f.LongestWait
	c.count(value(f.Starved) == starving, "starving: starved clients", value(f.Starved), "%d", starving)
	c.count(f.AcquisitionsMin == 0, "starving: fewest acquisitions", float64(f.AcquisitionsMin), "0")
	c.count(near(value(f.Jain), even, 0.02), "starving: Jain index", value(f.Jain), "%v", even)
	c.want(beyond(longest), "starving: longest wait", bound(longest), results.Nanoseconds, "≥ the window")
	c.want(p95 != nil && p95.AtLeast, "starving: p95 per client", bound(p95), results.Nanoseconds, "a lower bound")
	c.count(value(f.WorkingSet) <= others, "starving: working set", value(f.WorkingSet), "at most %d", others)
	c.count(value(f.ReacquireDistance) <= others, "starving: reacquire distance", value(f.ReacquireDistance),
		"at most %d", others)
	c.want(overtaken >= 99, "starving: overtaken", overtaken, results.Percent, "all")
	c.count(value(f.LargestBypass) >= float64(all), "starving: largest bypass", value(f.LargestBypass),
		"at least all %d acquisitions", all)
	c.count(open >= starving, "starving: unfinished waits", float64(open), "at least %d", starving)

	f = fed.Fairness
	longest = f.LongestWait
	c.count(value(f.Starved) == 0, "fed: starved clients", value(f.Starved), "0")
	c.count(value(f.Jain) >= 0.99, "fed: Jain index", value(f.Jain), "1")
	c.want(!beyond(longest), "fed: longest wait", bound(longest), results.Nanoseconds, "below the window")
	c.count(value(f.WorkingSet) > others, "fed: working set", value(f.WorkingSet), "%d", crowd)
	c.count(value(f.ReacquireDistance) > others, "fed: reacquire distance", value(f.ReacquireDistance), "%d", crowd)
	c.count(value(f.LargestBypass) < crowd, "fed: largest bypass", value(f.LargestBypass), "below %d", crowd)
	return nil
}

// shown is the part of a stall that the waits must show. A tenth of the arrivals fall into the stall, so the
// longest hundredth of all waits are those of its first tenth. The rest of a fifth allows for chance.
const shown = 0.8

// exaggerated is how many times as long as the stall the waits may be: those that arrived during the stall are served
// one after the other, in no certain order. Waits that were corrected twice for the stall are longer.
const exaggerated = 2.0

// omission stalls the server for a tenth of an open-loop run. The arrivals of the stall wait, and the
// percentiles must show it.
func (s *session) omission(ctx context.Context, c *Check) error {
	if s.server.Describe().Source == "address" {
		c.unsure("only a server that lockbench started itself is stalled")
		return nil
	}
	v, err := contender()
	if err != nil {
		return err
	}
	stall := s.Effort.Stalled / 10
	pause, err := workloads.ParseFault(fmt.Sprintf("pause:at=%v,for=%v", s.Effort.Stalled/4, stall))
	if err != nil {
		return fmt.Errorf("stall the server: %w", err)
	}
	w := workload(500, 5, s.Effort.Stalled)
	w.Rate, w.Arrivals, w.Hold = 200, workloads.ArrivalsConstant, workloads.Fixed(time.Millisecond)
	w.Faults = []workloads.Fault{pause}
	injector := s.server.Faults(w.Faults)
	defer injector.Close()
	job := s.job(v, w)
	job.Faults = injector
	run, err := s.do(ctx, fmt.Sprintf("omission: %s in an open loop, the server stalls for %v", v.Name(), stall), job)
	if err != nil {
		return err
	}
	if len(run.Faults) == 0 || len(run.Faults[0].Injections) == 0 {
		c.unsure("the server was not stalled: %s", strings.Join(run.Invalid, "; "))
		return nil
	}
	stalled, wait := float64(run.Faults[0].Injections[0].LastedNS), run.Waiting.PerAcquisition
	c.inform("server stalled for", stalled, results.Nanoseconds)
	c.want(bound(wait.P99) >= shown*stalled, fmt.Sprintf("%d waits: p99", wait.Count), bound(wait.P99),
		results.Nanoseconds, "at least %v of the stall", shown)
	limit := c.want
	if run.MachineBound() { // the waiters may be served slowly afterwards
		limit = c.hope
	}
	limit(bound(wait.P99) <= exaggerated*stalled, "p99, not exaggerated", bound(wait.P99), results.Nanoseconds,
		"at most %v times the stall", exaggerated)
	c.want(bound(wait.P50) <= shown*stalled/2, "p50, not stalled", bound(wait.P50),
		results.Nanoseconds, "at most %v of it", shown/2)
	return nil
}

// meanWait is the mean of the exponential waits in the percentiles check.
const meanWait = 40 * time.Millisecond

// percentiles runs a lock with known waits that are independent of each other and of the client, after a
// warm-up. The percentiles per acquisition and per client must both be those of the waits.
func (s *session) percentiles(ctx context.Context, c *Check) error {
	w := workload(1000, 10, s.Effort.Window)
	w.Warmup, w.Hold = workloads.Duration(meanWait), workloads.Dist{}
	lock := newDrawn(meanWait)
	run, err := s.do(ctx, "percentiles: waits that are known", s.job(lock.strategy(), w))
	if err != nil {
		return err
	}
	late := time.Duration(lock.late.Load() / max(1, lock.waits.Load()))
	c.inform("waits longer than drawn by, on average", float64(late), results.Nanoseconds)
	want := c.want
	if late > meanWait/20 { // because of the machine, and not the same for all
		want = c.hope
	}
	perAcquisition, perClient := run.Waiting.PerAcquisition, run.Waiting.PerClient
	for _, p := range []struct {
		name  string
		got   *results.Bound
		share float64
	}{
		{"per acquisition: p50", perAcquisition.P50, 0.5},
		{"per acquisition: p90", perAcquisition.P90, 0.9},
		{"per client: p50", perClient.P50, 0.5},
		{"per client: p90", perClient.P90, 0.9},
	} {
		truth := float64(late) - math.Log(1-p.share)*float64(meanWait)
		ok := near(bound(p.got)/truth, 1, 0.05) || p.got != nil && p.got.AtLeast && bound(p.got) < truth
		want(ok, p.name, bound(p.got), results.Nanoseconds, "%v within 5 %%", time.Duration(truth))
	}
	return nil
}

// holds asks for short holds, and compares the recorded holds with the requested ones and with the lock's own
// clock. A busy machine may make a hold too long; none may be too short.
func (s *session) holds(ctx context.Context, c *Check) error {
	for _, asked := range []time.Duration{200 * time.Microsecond, time.Millisecond} {
		w := workload(100, 10, s.Effort.Window)
		w.Hold = workloads.Fixed(asked)
		lock := &queue{}
		run, err := s.do(ctx, "holds: "+asked.String(), s.job(lock.strategy(), w))
		if err != nil {
			return err
		}
		hold := run.Speed.Hold
		mean, own := value(hold.MeanNS), float64(lock.held)/float64(max(1, lock.leases))
		figure := func(name string) string { return fmt.Sprintf("%v: %s", asked, name) }
		clock := figure("mean hold by the lock's own clock")
		// The lock's time encloses each recorded hold.
		if recorded := mean * float64(hold.Count); float64(lock.held) < recorded {
			c.want(false, clock, own, results.Nanoseconds,
				"all together no less than the recorded %v", time.Duration(recorded))
		} else {
			c.hope(near(mean/own, 1, 0.02), clock, own, results.Nanoseconds,
				"as recorded, %v, within 2 %%", time.Duration(mean))
		}
		c.want(bound(hold.P50) >= 0.98*float64(asked), figure("hold p50"), bound(hold.P50),
			results.Nanoseconds, "no less than asked for")
		c.hope(mean <= 1.02*float64(asked), figure("mean hold"), mean,
			results.Nanoseconds, "at most 2 %% more than asked for")
		c.inform(figure("CPU of the generator, of one core"), run.Generator.CPUPercent, results.Percent)
	}
	return nil
}
