package measure

// Clients record their waits and holds in shards, so that they seldom wait for one another's locks. The engine reads
// the records in two ways. SoFar and Recent run while clients run, and read only what the locks of the shards guard.
// Record and Parts also read fields that only the client itself writes. Before they are called, every client must have
// ended or been replaced by Drop.

import (
	"fmt"
	"iter"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/results"
)

// Recorder collects the records of all clients of a run. A Recorder uses a few shards of histograms and about 200 bytes
// per client. This memory does not grow during the run.
type Recorder struct {
	window  *Window
	shards  []*shard
	clients []*Client

	// underWay holds the ages of the waits that were open at the last call of Recent.
	underWay results.Histogram

	openLoop bool
	backlog  int64 // open-loop arrivals that no client took
	oldest   int64 // age of the oldest of them, ns
}

// mostShards limits the memory, since the histograms of a shard take about 4 MB.
const mostShards = 16

// OpenLoop declares that the clients are slots for the arrivals of an open loop. The lock does not determine how many
// arrivals a slot gets, so the Recorder omits the figures per client.
func (r *Recorder) OpenLoop() {
	r.openLoop = true
	for _, s := range r.shards {
		s.service = newDurations()
	}
}

// Backlog records the open-loop arrivals that were due before the end of the window and that no client had taken by
// then. Each counts as an open wait.
func (r *Recorder) Backlog(due iter.Seq[int64]) {
	end := r.window.End()
	for at := range due {
		r.shards[0].waits.record(end-at, max(0, r.window.Open-at), Stopped)
		r.oldest = max(r.oldest, end-at)
		r.backlog++
	}
}

// shard holds the histograms of a subset of the clients.
type shard struct {
	mu       sync.Mutex
	waits    durations // ns
	byClient durations // the same waits, weighted by client; see results.Waiting
	// service holds the waits of an open loop, measured from the call of Acquire, in ns. A closed loop does not use it.
	service            durations
	recent             durations             // ns, waits that ended since Recent was last called
	handoffs           *histogram            // ns, since Recent was last called
	kinds              [kindCount]*histogram // ns
	overshoot          *histogram            // ns, by which holds exceeded the drawn time
	asked              float64               // ns, sum of the drawn holds
	held               int64                 // ns, sum of the holds that have ended, clipped to the window
	reacquireDistances *histogram            // grants until the same client's next grant
}

// NewRecorder returns a Recorder for the given number of clients.
func NewRecorder(window *Window, clients int) *Recorder {
	r := &Recorder{window: window}
	// Parts needs an even number of shards, or one shard per client.
	for range min(clients, 2*runtime.GOMAXPROCS(0), mostShards) {
		s := &shard{
			waits: newDurations(), byClient: newDurations(),
			recent:             durations{ended: newRecent(), gaveUp: newRecent(), open: newRecent()},
			handoffs:           newRecent(),
			reacquireDistances: newHistogram(), overshoot: newHistogram(),
		}
		for kind := range s.kinds {
			s.kinds[kind] = newHistogram()
		}
		r.shards = append(r.shards, s)
	}
	r.clients = make([]*Client, clients)
	for i := range r.clients {
		r.clients[i] = &Client{window: window, shard: r.shards[i%len(r.shards)]}
	}
	return r
}

// Client returns the record of client i.
func (r *Recorder) Client(i int) *Client { return r.clients[i] }

// Drop replaces the records of hung clients by empty ones, because their goroutines may still write to the old records.
func (r *Recorder) Drop(hung []int) {
	for _, i := range hung {
		r.clients[i] = &Client{window: r.window, shard: r.shards[0]}
	}
}

// Record writes all records into a run, whose Compute method then computes the figures.
func (r *Recorder) Record(run *results.Run, keys []*Key) {
	r.SoFar(run, keys)
	run.WindowNS, run.TimeAccounting = r.window.Length(), r.timeAccounting()
	run.Speed.Release, run.Waiting.Backlog = r.kind(Release), r.backlog
	if r.openLoop {
		run.Waiting.Service = r.describe(func(s *shard) durations { return s.service })
	} else {
		run.Waiting.Service = run.Waiting.PerAcquisition
		run.Record.WithoutTurn = r.withoutTurn()
		run.Waiting.PerClient = r.perClient()
		run.Waiting.PerClient.Count = run.Waiting.PerAcquisition.Count
		run.Waiting.PerClient.Censored = run.Waiting.PerAcquisition.Censored
	}
	g := &run.Generator
	for _, c := range r.clients {
		if c.open {
			run.Waiting.Open++
		}
		g.Starts += c.starts
		g.LateStarts += c.late
		g.BehindStarts += c.behind
	}
	g.TimerOvershoot = r.sum(func(s *shard) *histogram { return s.overshoot }).Median()
	run.Fairness = r.fairness(run.Fairness, keys)
}

// SoFar fills run with the records that are available while clients run: the holds, the handoffs, the waits, the
// lateness of starts, and the acquisitions in total and per client.
func (r *Recorder) SoFar(run *results.Run, keys []*Key) {
	run.Record = results.Record{Clients: int64(len(r.clients)), Keys: int64(len(keys))}
	r.eachShard(func(s *shard) { run.Record.AskedNS += s.asked })
	run.Speed = results.Speed{Hold: r.kind(Hold), Handoff: r.kind(Handoff)}
	run.Waiting = results.Waiting{
		PerAcquisition: r.describe(func(s *shard) durations { return s.waits }), Lateness: r.kind(Lateness),
	}
	shares := newHistogram()
	for _, c := range r.clients {
		c.shard.mu.Lock()
		run.Speed.Acquisitions += c.granted
		run.Speed.Served += c.granted + c.served
		run.Waiting.TimedOut += c.timedOut
		shares.record(c.granted + c.served)
		c.shard.mu.Unlock()
	}
	if !r.openLoop {
		run.Fairness.PerClient = results.Counted(shares.Histogram)
	}
}

// Parts returns the figures of the clients of each part of a mixed strategy. With n parts, client i belongs to part i
// mod n. It returns nil in an open loop.
func (r *Recorder) Parts(names []string) (parts []results.Part) {
	if r.openLoop {
		return nil
	}
	all := int64(0)
	for i, name := range names {
		part, overtaken := results.Part{Strategy: name}, 0.0
		for _, c := range everyOf(r.clients, i, len(names)) {
			part.Clients++
			part.Acquisitions += c.granted
			overtaken += float64(c.overtaken)
		}
		all += part.Acquisitions
		if part.Acquisitions > 0 {
			part.Overtaken = new(overtaken / float64(part.Acquisitions) * 100)
		}
		// Client i is in shard i mod the number of shards. That number is even or the number of clients, so no shard mixes
		// two parts.
		of := &Recorder{shards: everyOf(r.shards, i, len(names))}
		part.Waits = of.describe(func(s *shard) durations { return s.waits })
		parts = append(parts, part)
	}
	for i := range parts {
		if all > 0 {
			parts[i].Share = new(float64(parts[i].Acquisitions) / float64(all) * 100)
		}
	}
	return parts
}

// everyOf returns every nth element of all, beginning with the element at index first.
func everyOf[T any](all []T, first, n int) (some []T) {
	for i := first; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// perClient returns the distribution of the waits in which each client has the same weight, the length of the window.
// The weight of a wait is the time since the client's previous wait began. A client's first wait in the window gets the
// remaining time: from the opening of the window to the beginning of that wait, and from the beginning of the client's
// last wait to the end of the window.
func (r *Recorder) perClient() results.Distribution {
	rest, starved := newDurations(), newHistogram()
	opened, end := r.window.Open, r.window.End()
	for _, c := range r.clients {
		var seen wait
		var weight int64
		switch {
		case c.first.seen:
			seen, weight = c.first, end-c.last
		// No wait began in the window, so the wait that was open when the window opened stands for the whole window.
		case c.before.seen:
			seen, weight = c.before, end-opened
		}
		if c.starved() && end > opened {
			starved.weigh(seen.ns, end-opened)
		}
		if weight > 0 {
			rest.of(seen.end).weigh(seen.ns, weight)
		}
	}
	counted := func(h *histogram) results.Histogram { return results.Counted(h.Histogram) }
	unseen := &results.Rest{
		Histogram: counted(rest.ended), GaveUpHistogram: counted(rest.gaveUp), CensoredHistogram: counted(rest.open),
		StarvedHistogram: counted(starved),
	}
	return results.DescribeBetween(r.observed(func(s *shard) durations { return s.byClient }), unseen, r.longest())
}

// longest returns the longest wait of any client. It is a lower bound if the end of that wait was not observed.
func (r *Recorder) longest() *results.Bound {
	var longest results.Bound
	for _, c := range r.clients {
		if c.longest > longest.NS {
			longest = results.Bound{NS: c.longest, AtLeast: c.cut}
		}
	}
	if r.oldest > longest.NS {
		longest = results.Bound{NS: r.oldest, AtLeast: true}
	}
	if longest.NS == 0 {
		return nil
	}
	return &longest
}

func (r *Recorder) kind(kind DurationKind) results.Distribution {
	return r.describe(func(s *shard) durations { return durations{ended: s.kinds[kind]} })
}

// describe summarises one kind of durations over all shards.
func (r *Recorder) describe(of func(*shard) durations) results.Distribution {
	var longest *results.Bound
	var overflow int64
	var sum float64
	r.eachShard(func(s *shard) {
		d := of(s)
		sum += d.ended.sum
		for _, h := range []*histogram{d.ended, d.gaveUp, d.open} {
			if h != nil && h.TotalCount() > 0 {
				longest = results.Longest(longest, &results.Bound{NS: h.largest, AtLeast: h != d.ended})
				overflow += h.overflow
			}
		}
	})
	described := results.Describe(r.observed(of), longest)
	described.Overflow = overflow
	if described.Count > 0 {
		// Compute the mean from the exact sum. A mean of the histogram would have the error of its bins.
		described.MeanNS = new(sum / float64(described.Count))
	}
	return described
}

// observed returns the sum of one kind of durations over the shards.
func (r *Recorder) observed(of func(*shard) durations) results.Observations {
	return results.Observations{
		Ended:   r.sum(func(s *shard) *histogram { return of(s).ended }),
		GaveUp:  r.sum(func(s *shard) *histogram { return of(s).gaveUp }),
		Open:    r.sum(func(s *shard) *histogram { return of(s).open }),
		Entered: r.sum(func(s *shard) *histogram { return of(s).entered }),
	}
}

// sum returns the sum of one histogram per shard. A histogram that is nil adds nothing. Clients may wait for a locked
// shard, so sum locks each shard only while it copies the histogram.
func (r *Recorder) sum(of func(*shard) *histogram) (sum results.Histogram) {
	var copies []*hdrhistogram.Snapshot
	r.eachShard(func(s *shard) {
		if h := of(s); h != nil && h.TotalCount() > 0 {
			copies = append(copies, h.Export())
		}
	})
	for _, one := range copies {
		sum = sum.Plus(results.Exported(one))
	}
	return sum
}

// eachShard calls visit with each shard while it holds the lock of that shard.
func (r *Recorder) eachShard(visit func(*shard)) {
	for _, s := range r.shards {
		s.mu.Lock()
		visit(s)
		s.mu.Unlock()
	}
}

// tolerance is how much the sum of a client's phases may differ from the window's length, in percent.
const tolerance = 0.1

// timeAccounting compares the sum of every client's phases with the window's length. If they differ, the harness has
// lost a sample or counted one twice, so no other figure can be trusted.
func (r *Recorder) timeAccounting() results.TimeAccounting {
	length := r.window.Length()
	b := results.TimeAccounting{Window: seconds(length) * float64(len(r.clients))}
	for _, c := range r.clients {
		b.Wait += seconds(c.spent[waiting])
		b.Hold += seconds(c.spent[holding])
		b.Release += seconds(c.spent[releasing])
		b.Think += seconds(c.spent[thinking])
		var sum int64
		for _, ns := range c.spent {
			sum += ns
		}
		if length > 0 {
			b.WorstPercent = max(b.WorstPercent, math.Abs(float64(sum-length))/float64(length)*100)
		}
	}
	b.Balanced = length > 0 && b.WorstPercent <= tolerance
	return b
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// Recent summarises the ended and open waits, and the handoffs, since the previous call of Recorder.Recent. Its
// percentiles have an error of at most 1 %.
type Recent struct {
	P50, P99               *results.Bound // nil without any wait
	Max                    *results.Bound // of the waits that ended; nil without any
	HandoffP50, HandoffP99 *results.Bound // nil without any handoff
}

// Recent returns the summary of the waits in the window since the last call. ages holds the current open waits. Only
// one goroutine may call Recent.
func (r *Recorder) Recent(ages []results.Wait) Recent {
	var o results.Observations
	var handoffs results.Histogram
	var most *results.Bound
	longest, open := int64(0), newRecent()
	r.eachShard(func(s *shard) {
		if s.recent.ended.TotalCount() > 0 {
			most = results.Longest(most, &results.Bound{NS: s.recent.ended.largest})
		}
		take := func(sum *results.Histogram, h *histogram) {
			longest = max(longest, h.largest)
			*sum = sum.Plus(results.Counted(h.Histogram))
			h.reset()
		}
		take(&o.Ended, s.recent.ended)
		take(&o.GaveUp, s.recent.gaveUp)
		take(&o.Open, s.recent.open)
		handoffs = handoffs.Plus(results.Counted(s.handoffs.Histogram))
		s.handoffs.reset()
	})
	for _, age := range ages {
		open.record(age.NS)
		longest = max(longest, age.NS)
	}
	// A wait that was already open at the last call counts from the age that it had then, which is in Entered.
	underWay := results.Counted(open.Histogram)
	o.Open, o.Entered = o.Open.Plus(underWay), r.underWay
	r.underWay = underWay
	seen := results.Estimate(o, &results.Bound{NS: longest})
	between := results.Estimate(results.Observations{Ended: handoffs}, nil)
	return Recent{
		seen.Quantile(0.5), seen.Quantile(0.99), most, between.Quantile(0.5), between.Quantile(0.99),
	}
}

// DurationKind is a kind of duration whose distribution a run reports. Waits are recorded separately, because the end
// of a wait is not always observed.
type DurationKind int

// These are the kinds of durations, which results.Run documents.
const (
	Hold DurationKind = iota
	Release
	Handoff
	Lateness
	kindCount
)

// Took records a duration of the given kind if it ends in the window.
func (c *Client) Took(kind DurationKind, from, to int64) {
	if !c.window.Contains(to) {
		return
	}
	c.shard.mu.Lock()
	defer c.shard.mu.Unlock()
	c.shard.kinds[kind].record(to - from)
}

// histogram is an HDR histogram of nanoseconds. A duration beyond its range counts as its largest value; overflow is
// the number of such durations.
type histogram struct {
	*hdrhistogram.Histogram
	overflow int64
	largest  int64 // exact, even beyond the range
	sum      float64
}

func newHistogram() *histogram {
	return &histogram{Histogram: results.NewHistogram()}
}

func (h *histogram) record(ns int64) { h.weigh(ns, 1) }

// weigh records a duration n times.
func (h *histogram) weigh(ns, n int64) {
	h.largest = max(h.largest, ns)
	h.sum += float64(n) * float64(ns)
	if top := h.HighestTrackableValue(); ns > top {
		h.overflow += n
		ns = top
	}
	if err := h.RecordValues(max(ns, 0), n); err != nil {
		panic(fmt.Sprintf("measure: %d ns does not fit the histogram: %v", ns, err)) // impossible because of the bounds above
	}
}

func (h *histogram) reset() {
	h.Reset()
	h.overflow, h.largest, h.sum = 0, 0, 0
}

// newRecent returns a histogram for one slice of the timeline. It has only two significant digits, because the
// histograms of all shards are added up and reset every second while clients wait for the lock of the shard.
func newRecent() *histogram {
	return &histogram{Histogram: hdrhistogram.New(1, int64(time.Hour), 2)}
}

// durations holds four histograms: durations whose end was observed (ended), waits that were given up (gaveUp),
// durations whose end was not observed (open), and the ages at which the observation of a duration began (entered).
type durations struct{ ended, gaveUp, open, entered *histogram }

func newDurations() durations {
	return durations{newHistogram(), newHistogram(), newHistogram(), newHistogram()}
}

// record adds a duration that had the given age when its observation began.
func (d durations) record(ns, age int64, how Outcome) {
	d.of(how).record(ns)
	if age > 0 {
		d.entered.record(age)
	}
}

func (d durations) of(how Outcome) *histogram {
	switch how {
	case Granted:
		return d.ended
	case TimedOut:
		return d.gaveUp
	default:
		return d.open
	}
}

// Describe returns the distribution of the given durations in nanoseconds.
func Describe(all []int64) results.Distribution {
	s := &shard{}
	s.kinds[Hold] = newHistogram()
	for _, ns := range all {
		s.kinds[Hold].record(ns)
	}
	return (&Recorder{shards: []*shard{s}}).kind(Hold)
}
