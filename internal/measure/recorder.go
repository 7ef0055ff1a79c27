package measure

import (
	"fmt"
	"iter"
	"math"
	"runtime"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/results"
)

// Recorder collects the records of all clients of a run. Its memory is a few
// shards of histograms and about 1.3 KiB a client, however long the run is.
type Recorder struct {
	window  *Window
	shards  []*shard
	clients []*Client

	slots   bool
	backlog int64 // open-loop arrivals that nobody took
	oldest  int64 // of them, ns
}

// mostShards bounds the memory: a shard's histograms take about 2 MB.
const mostShards = 16

// Slots says that the clients are only slots, as those of an open loop that
// arrivals are given to: how much each gets is not the lock's doing, and nothing
// is said of it.
func (r *Recorder) Slots() { r.slots = true }

// Backlog records the open-loop arrivals that were due before the end of the
// window and had found no client by then: each a wait that had not even begun.
func (r *Recorder) Backlog(due iter.Seq[int64]) {
	end := r.window.End()
	for at := range due {
		r.shards[0].censored.record(end - at)
		r.oldest = max(r.oldest, end-at)
		r.backlog++
	}
}

// Starts are an open loop's starts in the window: all, those that the generator
// delayed, and those for which no client was free.
func (r *Recorder) Starts() (all, late, behind int64) {
	for _, c := range r.clients {
		all += c.starts
		late += c.late
		behind += c.behind
	}
	return all, late, behind
}

// Overshoot is the median of how much longer holds took than was asked for, in
// nanoseconds; nil without any.
func (r *Recorder) Overshoot() *int64 {
	overshoot := r.total(func(s *shard) *histogram { return s.overshoot })
	if overshoot.TotalCount() == 0 {
		return nil
	}
	median := overshoot.ValueAtQuantile(50)
	return &median
}

// shard is what a part of the clients record into.
type shard struct {
	mu                                     sync.Mutex
	wait, censored, hold, release, handoff *histogram // ns
	service                                *histogram // ns, waits from their actual start
	overshoot                              *histogram // ns, holds beyond what was asked for
	returns                                *histogram // grants until the same client's next
	recent                                 recent
}

// NewRecorder makes the records of so many clients.
func NewRecorder(window *Window, clients int) *Recorder {
	r := &Recorder{window: window}
	for range min(clients, 4*runtime.GOMAXPROCS(0), mostShards) {
		r.shards = append(r.shards, &shard{
			wait: newHistogram(), censored: newHistogram(), hold: newHistogram(), release: newHistogram(), handoff: newHistogram(), returns: newHistogram(),
			service: newHistogram(), overshoot: newHistogram(),
		})
	}
	r.clients = make([]*Client, clients)
	for i := range r.clients {
		r.clients[i] = &Client{window: window, shard: r.shards[i%len(r.shards)]}
	}
	return r
}

// Client is client i's own record.
func (r *Recorder) Client(i int) *Client { return r.clients[i] }

// Drop takes clients that never came back out of the books' reading; their
// records are still being written.
func (r *Recorder) Drop(stuck []int) {
	for _, i := range stuck {
		r.clients[i] = &Client{window: r.window, shard: r.shards[0]}
	}
}

// Speed summarises throughput and the phases around it, over so many keys.
func (r *Recorder) Speed(keys int) (results.Speed, error) {
	seconds := float64(r.window.Length()) / 1e9
	var s results.Speed
	var held int64
	for _, c := range r.clients {
		s.Acquisitions += c.turns
		s.Served += c.turns + c.served
		held += c.books[holding]
	}
	if seconds > 0 {
		s.PerSecond = float64(s.Acquisitions) / seconds
		s.ServedPerSecond = float64(s.Served) / seconds
		s.Utilisation = float64(held) / 1e9 / seconds / float64(keys)
	}
	var err error
	for _, d := range []struct {
		into *results.Distribution
		of   func(*shard) *histogram
	}{
		{&s.Handoff, func(s *shard) *histogram { return s.handoff }},
		{&s.Hold, func(s *shard) *histogram { return s.hold }},
		{&s.Release, func(s *shard) *histogram { return s.release }},
	} {
		if *d.into, err = describe(r.total(d.of), newHistogram()); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Waiting summarises the waits, per acquisition and per client.
func (r *Recorder) Waiting() (results.Waiting, error) {
	perAcquisition, err := describe(
		r.total(func(s *shard) *histogram { return s.wait }),
		r.total(func(s *shard) *histogram { return s.censored }))
	if err != nil {
		return results.Waiting{}, err
	}
	w := results.Waiting{PerAcquisition: perAcquisition, Backlog: r.backlog}
	if !r.slots {
		if w.PerClient, err = r.perClient(); err != nil {
			return w, err
		}
	}
	w.Service, err = describe(r.total(func(s *shard) *histogram { return s.service }), newHistogram())
	for _, c := range r.clients {
		w.GaveUp += c.gaveUp
		if c.open {
			w.Open++
		}
	}
	return w, err
}

// wholeClient is a client's weight in the histograms of perClient, which count
// in whole numbers.
const wholeClient = 1e9

// perClient gives every client the same weight, spread over its waits.
func (r *Recorder) perClient() (results.Distribution, error) {
	var ended, censored [sketchBuckets]float64
	var finished, cut int64
	for _, c := range r.clients {
		waits := float64(c.waits.total)
		for _, w := range c.censored {
			waits += float64(w.n)
			cut += int64(w.n)
		}
		finished += c.turns + c.served
		for bucket, n := range c.waits.counts {
			if n > 0 {
				ended[bucket] += float64(n) / waits
			}
		}
		for _, w := range c.censored {
			censored[w.bucket] += float64(w.n) / waits
		}
	}
	d, err := results.Describe(weighted(ended), weighted(censored), r.longest())
	d.Count, d.Censored = finished, cut
	return d, err
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

func (r *Recorder) total(of func(*shard) *histogram) *histogram {
	sum := newHistogram()
	for _, s := range r.shards {
		s.mu.Lock()
		sum.merge(of(s))
		s.mu.Unlock()
	}
	return sum
}

// weighted is a histogram of the buckets' middles.
func weighted(weights [sketchBuckets]float64) *hdrhistogram.Histogram {
	h := results.NewHistogram()
	for bucket, n := range weights {
		if n > 0 {
			value := min(sketchValue(bucket), h.HighestTrackableValue())
			if err := h.RecordValues(value, max(1, int64(math.Round(n*wholeClient)))); err != nil {
				panic(fmt.Sprintf("measure: %d ns does not fit the histogram: %v", value, err)) // the line above rules it out
			}
		}
	}
	return h
}

// describe summarises observed and censored durations.
func describe(ended, censored *histogram) (results.Distribution, error) {
	var longest *results.Bound
	if ended.TotalCount()+censored.TotalCount() > 0 {
		longest = &results.Bound{NS: max(ended.largest, censored.largest), AtLeast: censored.largest > ended.largest}
	}
	d, err := results.Describe(ended.Histogram, censored.Histogram, longest)
	d.Overflow = ended.overflow + censored.overflow
	if d.Count > 0 {
		mean := ended.sum / float64(d.Count)
		d.MeanNS = &mean
	}
	return d, err
}

// Describe summarises a few durations in nanoseconds.
func Describe(durations []int64) (results.Distribution, error) {
	h := newHistogram()
	for _, ns := range durations {
		h.record(ns)
	}
	return describe(h, newHistogram())
}
