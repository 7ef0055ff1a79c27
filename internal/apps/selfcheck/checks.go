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

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

const (
	// longEnough is the length of the shortest overlap that the audit must find.
	longEnough = 100 * time.Microsecond
	enough     = 50 // number of overlaps that the check needs
	// overlapOff is the largest allowed error, in percent, of the total duration of overlaps in the audit.
	overlapOff = 2.0
)

// audit runs a lock that admits a second client on purpose. It compares the audit of the engine with two independent
// counts of the overlaps: the count of the lock itself, and the number and lengths that follow from the recorded times
// of the leases. It then runs the same lock without second clients, for which the audit must find no overlaps.
func (s *session) audit(ctx context.Context, c *Check) error {
	w := workload(8, 4, s.Effort.Window)
	_ = w.Hold.UnmarshalText([]byte("uniform:1ms,4ms")) // a valid constant
	lock, seen := &queue{doubling: true}, &records{}
	job := s.job(lock.strategy(), w)
	job.Observer = seen
	run, err := s.do(ctx, "audit: a lock that admits a second client", job)
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
		c.unsure("only %d overlaps of at least %v: the check needs %d", long, longEnough, enough)
	}
	let, audited := lock.twice, run.Safety.Overlaps
	c.inform("second clients that the lock admitted", float64(let), results.Number)
	c.count(int64(len(found)) <= let, "overlaps by the clients' recorded instants", float64(len(found)), "at most as many")
	c.inform("overlaps of at least 100 µs", float64(long), results.Number)
	// The system may suspend a client between the end of its recorded hold and its call of Release. The audit then finds
	// an overlap that the recorded times do not show. So the largest allowed number of overlaps is the number of second
	// clients that the lock admitted.
	c.count(audited >= long && audited <= let, "overlaps found by the audit", float64(audited),
		"at least %d, at most %d", long, let)
	off := (float64(run.Safety.OverlapNS)/float64(total) - 1) * 100
	c.want(near(off, 0, overlapOff), "error of the overlapped time", off, results.Percent,
		"within %v %%", overlapOff)
	c.count(len(run.Safety.Broken) == 1, "claims found broken", float64(len(run.Safety.Broken)), "1")

	honest := &records{}
	job = s.job((&queue{}).strategy(), w)
	job.Observer = honest
	if run, err = s.do(ctx, "audit: the same lock, admitting one client", job); err != nil {
		return err
	}
	audited = run.Safety.Overlaps + run.Safety.ExpiredOverlaps
	c.count(audited == 0, "unrigged lock: overlaps found by the audit", float64(audited), "0")
	c.inform("unrigged lock: acquisitions", float64(len(honest.all)), results.Number)
	return nil
}

// overlaps computes from the recorded times of leases how long one lease overlapped another. It assumes that there are
// never more than two holders at the same time.
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

// records is an engine.Observer that stores each acquisition.
type records struct {
	mu  sync.Mutex
	all []engine.Acquisition
}

// Holding does nothing, because Acquired receives all times of a lease.
func (r *records) Holding(int) {}

// Releasing does nothing, because Acquired receives all times of a lease.
func (r *records) Releasing(int) {}

// Acquired stores the acquisition. Clients call it concurrently.
func (r *records) Acquired(a engine.Acquisition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, a)
}

// readings is the largest allowed difference between the two byte counts, as a number of replies to INFO. The two
// readers send INFO at different times before and after the run, so some replies are counted by only one of them.
const readings = 4

// outside reads the server's INFO before and after a run, over a second connection and with independent code. The
// report must have the same differences of the counters. On a user's server, these differences may include commands of
// other clients, so a mismatch is only inconclusive.
func (s *session) outside(ctx context.Context, c *Check) error {
	v, err := contender()
	if err != nil {
		return err
	}
	nodes, err := s.server.Clients(ctx, engine.Prefix+s.id+":outside", 1, nil)
	if err != nil {
		return fmt.Errorf("connect the second reader: %w", err)
	}
	client := nodes[0].Client
	defer func() { _ = client.Close() }()

	w := workload(50, 5, s.Effort.Window)
	w.Hold = workloads.Fixed(100 * time.Microsecond)
	before, size, err := readAllNumbers(ctx, client)
	if err != nil {
		return err
	}
	run, err := s.do(ctx, "outside: "+v.Name(), s.job(v, w))
	if err != nil {
		return err
	}
	after, _, err := readAllNumbers(ctx, client)
	if err != nil {
		return err
	}
	whole := run.Server.Whole
	if whole == nil || whole.Commands == nil || whole.BytesIn == nil || whole.BytesOut == nil {
		c.unsure("the server does not report its counters")
		return nil
	}

	want := c.want
	if s.server.Describe().Source == "address" {
		c.inform("bytes received from other clients", value(whole.OtherTraffic), results.Percent)
		want = c.wantIfUndisturbed
	}
	var seen, reported, apart float64
	for command := range after {
		name, counts := strings.CutPrefix(command, "cmdstat_")
		if !counts || name == "info" { // the readers themselves send INFO
			continue
		}
		outside, inside := after[command]-before[command], float64(whole.Commands[name])
		seen += outside
		reported += inside
		apart += math.Abs(outside - inside)
	}
	c.inform("commands by the second reader, without INFO", seen, results.Number)
	want(reported > 0 && apart == 0, "commands that the report counts differently", apart, results.Number, "0")
	for _, bytes := range []struct {
		name, field string
		reported    *int64
	}{
		{"received", "total_net_input_bytes", whole.BytesIn},
		{"sent", "total_net_output_bytes", whole.BytesOut},
	} {
		outside := after[bytes.field] - before[bytes.field]
		c.inform("bytes "+bytes.name+" by Redis, by the second reader", outside, results.Bytes)
		reported := float64(*bytes.reported)
		want(near(reported, outside, readings*size), "bytes missing in the report", outside-reported, results.Bytes,
			"at most %d readings of INFO", readings)
	}
	return nil
}

// readAllNumbers reads all numbers in a reply to INFO: the calls of each command, and the values of all other numeric
// fields. size is the length of the reply in bytes.
func readAllNumbers(
	ctx context.Context, client redis.UniversalClient,
) (numbers map[string]float64, size float64, err error) {
	text, err := client.Info(ctx, "all").Result()
	if err != nil {
		return nil, 0, fmt.Errorf("read INFO with the second reader: %w", err)
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

// shown is the smallest allowed ratio of the p99 of the waits to the stall. A tenth of the arrivals fall into the
// stall. So the longest hundredth of all waits belong to arrivals in the first tenth of the stall, and last at least
// 0.9 of the stall. The margin between 0.9 and 0.8 allows for chance.
const shown = 0.8

// exaggerated is the largest allowed ratio of the p99 of the waits to the stall. It is above 1 because the arrivals of
// the stall are served one after the other, in any order, which adds to their waits. A harness that corrects for the
// stall twice exceeds this ratio.
const exaggerated = 2.0

// omission stalls the server for a tenth of a run in an open loop. The percentiles must contain the waits of the
// arrivals during the stall.
func (s *session) omission(ctx context.Context, c *Check) error {
	if s.server.Describe().Source == "address" {
		c.unsure("selfcheck stalls only a server that lockbench started")
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
	run, err := s.do(ctx, fmt.Sprintf("omission: %s in an open loop while the server stalls for %v", v.Name(), stall), job)
	if err != nil {
		return err
	}
	if len(run.Faults) == 0 || len(run.Faults[0].Injections) == 0 {
		c.unsure("the server was not stalled: %s", run.Invalid)
		return nil
	}
	stalled, wait := float64(run.Faults[0].Injections[0].LastedNS), run.Waiting.PerAcquisition
	c.inform("stall of the server", stalled, results.Nanoseconds)
	c.want(bound(wait.P99) >= shown*stalled, fmt.Sprintf("p99 of %d waits", wait.Count), bound(wait.P99),
		results.Nanoseconds, "at least %v of the stall", shown)
	limit := c.want
	if run.MachineBound() { // the waits before and after the stall may also be long
		limit = c.wantIfUndisturbed
	}
	limit(bound(wait.P99) <= exaggerated*stalled, "p99, upper limit", bound(wait.P99), results.Nanoseconds,
		"at most %v times the stall", exaggerated)
	limit(bound(wait.P50) <= shown*stalled/2, "p50", bound(wait.P50),
		results.Nanoseconds, "at most %v of the stall", shown/2)
	return nil
}

// holds compares the recorded holds with the requested holds, and with the time between grant and release that the lock
// measures. A hold may be too long on a busy machine, but it must never be too short.
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
		// The time that the lock measures contains the recorded hold, so it cannot be shorter.
		if recorded := mean * float64(hold.Count); float64(lock.held) < recorded {
			c.want(false, clock, own, results.Nanoseconds,
				"in total not below the recorded %v", time.Duration(recorded))
		} else {
			c.wantIfUndisturbed(near(mean/own, 1, 0.02), clock, own, results.Nanoseconds,
				"within 2 %% of the recorded %v", time.Duration(mean))
		}
		c.want(bound(hold.P50) >= 0.98*float64(asked), figure("hold p50"), bound(hold.P50),
			results.Nanoseconds, "at least the requested hold")
		c.wantIfUndisturbed(mean <= 1.02*float64(asked), figure("mean hold"), mean,
			results.Nanoseconds, "at most 2 %% above the requested hold")
		c.inform(figure("CPU of the generator, of one core"), run.Generator.CPUPercent, results.Percent)
	}
	return nil
}
