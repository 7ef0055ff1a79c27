package measure

import (
	"iter"
	"runtime"
	"sync"

	"github.com/lockbench/lockbench/results"
)

// Recorder collects the records of all clients of a run. Its memory does not grow with the
// run: a few shards of histograms and some 200 bytes per client.
type Recorder struct {
	window  *Window
	shards  []*shard
	clients []*Client

	// underWay holds the ages of the waits that were under way when Recent was last called.
	underWay *histogram

	openLoop bool
	backlog  int64 // open-loop arrivals that no client took
	oldest   int64 // age of the oldest of them, ns
}

// mostShards bounds the memory: a shard's histograms take about 3 MB.
const mostShards = 16

// OpenLoop says that the clients are only slots to which an open loop gives arrivals. How
// much each slot gets does not depend on the lock, so the figures per client are left out.
func (r *Recorder) OpenLoop() { r.openLoop = true }

// Backlog records the open-loop arrivals that were due before the end of the window and that
// no client had taken by then. Each counts as a wait that has not ended.
func (r *Recorder) Backlog(due iter.Seq[int64]) {
	end := r.window.End()
	for at := range due {
		r.shards[0].waits.record(end-at, max(0, r.window.Open-at), false)
		r.oldest = max(r.oldest, end-at)
		r.backlog++
	}
}

// Starts returns an open loop's starts in the window: all, those that the generator delayed,
// and those for which no client was free.
func (r *Recorder) Starts() (all, late, behind int64) {
	for _, c := range r.clients {
		all += c.starts
		late += c.late
		behind += c.behind
	}
	return all, late, behind
}

// Overshoot is the median, in nanoseconds, of how much longer the holds took than drawn; nil
// without any.
func (r *Recorder) Overshoot() *int64 {
	overshoot := r.total(func(s *shard) *histogram { return s.overshoot })
	if overshoot.TotalCount() == 0 {
		return nil
	}
	return new(overshoot.ValueAtQuantile(50))
}

// shard is the set of histograms for a part of the clients.
type shard struct {
	mu                 sync.Mutex
	waits              durations             // ns
	byClient           durations             // the same, weighed by client; see results.Waiting
	recent             durations             // ns, waits that ended since Recent was last called; censored: without a lease
	kinds              [kindCount]*histogram // ns
	overshoot          *histogram            // ns, holds beyond the drawn time
	asked              float64               // ns, sum of the drawn holds
	reacquireDistances *histogram            // grants until the same client's next grant
}

// NewRecorder makes the records for this many clients.
func NewRecorder(window *Window, clients int) *Recorder {
	r := &Recorder{window: window}
	for range min(clients, 2*runtime.GOMAXPROCS(0), mostShards) {
		s := &shard{waits: newDurations(), byClient: newDurations(), recent: durations{ended: newRecent(), censored: newRecent()}, reacquireDistances: newHistogram(), overshoot: newHistogram()}
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

// Client returns client i's own record.
func (r *Recorder) Client(i int) *Client { return r.clients[i] }

// Drop removes clients that never returned from the time accounting: their goroutines may
// still write to their records.
func (r *Recorder) Drop(hung []int) {
	for _, i := range hung {
		r.clients[i] = &Client{window: r.window, shard: r.shards[0]}
	}
}

// Speed summarises throughput over this many keys.
func (r *Recorder) Speed(keys int) results.Speed {
	seconds := float64(r.window.Length()) / 1e9
	var s results.Speed
	var held int64
	for _, c := range r.clients {
		s.Acquisitions += c.granted
		s.Served += c.granted + c.served
		held += c.spent[holding]
	}
	if seconds > 0 {
		s.PerSecond = float64(s.Acquisitions) / seconds
		s.ServedPerSecond = float64(s.Served) / seconds
		s.Utilisation = float64(held) / 1e9 / seconds / float64(keys)
	}
	return s
}

// Waiting summarises the waits, per acquisition and per client.
func (r *Recorder) Waiting() (results.Waiting, error) {
	waits := r.sum(func(s *shard) durations { return s.waits })
	w := results.Waiting{PerAcquisition: describe(waits), Backlog: r.backlog}
	if !r.openLoop {
		var err error
		if w.PerClient, err = r.perClient(); err != nil {
			return w, err
		}
		w.PerClient.Count, w.PerClient.Censored = w.PerAcquisition.Count, w.PerAcquisition.Censored
	}
	for _, c := range r.clients {
		w.TimedOut += c.timedOut
		if c.open {
			w.Open++
		}
	}
	return w, nil
}

// perClient adds, for each client, the time before its first seen wait and after its last
// one. That time has no wait of its own: it counts for the first seen wait.
func (r *Recorder) perClient() (results.Distribution, error) {
	rest := newDurations()
	end := r.window.End()
	for _, c := range r.clients {
		switch {
		case c.first.seen:
			if left := end - c.last; left > 0 {
				rest.of(c.first.ended).weigh(c.first.ns, left)
			}
		case c.before.seen && end > r.window.Open:
			rest.of(c.before.ended).weigh(c.before.ns, end-r.window.Open)
		}
	}
	observed := r.sum(func(s *shard) durations { return s.byClient })
	return results.DescribeBetween(observed.observations(), rest.observations(), r.longest())
}

// longest is the longest wait of any client.
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

// sum adds up durations over the shards.
func (r *Recorder) sum(of func(*shard) durations) durations {
	return durations{
		ended:    r.total(func(s *shard) *histogram { return of(s).ended }),
		censored: r.total(func(s *shard) *histogram { return of(s).censored }),
		entered:  r.total(func(s *shard) *histogram { return of(s).entered }),
	}
}

func (r *Recorder) total(of func(*shard) *histogram) *histogram {
	var sum total
	r.eachShard(func(s *shard) { sum.add(of(s)) })
	return sum.all()
}

// eachShard visits the shards one by one, locked.
func (r *Recorder) eachShard(visit func(*shard)) {
	for _, s := range r.shards {
		s.mu.Lock()
		visit(s)
		s.mu.Unlock()
	}
}

// describe summarises durations.
func describe(d durations) results.Distribution {
	var longest *results.Bound
	if d.ended.TotalCount()+d.censored.TotalCount() > 0 {
		longest = &results.Bound{NS: max(d.ended.largest, d.censored.largest), AtLeast: d.censored.largest > d.ended.largest}
	}
	described := results.Describe(d.observations(), longest)
	described.Overflow = d.ended.overflow + d.censored.overflow
	if described.Count > 0 {
		described.MeanNS = new(d.ended.sum / float64(described.Count))
	}
	return described
}

// Describe summarises a few durations in nanoseconds.
func Describe(all []int64) results.Distribution {
	h := newHistogram()
	for _, ns := range all {
		h.record(ns)
	}
	return describe(allEnded(h))
}
