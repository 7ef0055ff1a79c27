package measure

import (
	"fmt"

	"github.com/lockbench/lockbench/results"
)

// Fairness summarises how the acquisitions were shared among the clients, over the
// window and at close range. The waiters are the clients', by their numbers.
func (r *Recorder) Fairness(keys []*Key, waiters []*Waiter) (results.Fairness, error) {
	f := results.Fairness{AcquisitionsMin: r.clients[0].granted + r.clients[0].served, LongestWait: r.longest()}
	f.Starved, _ = r.starved(keys, waiters)
	var sum, squares, acquisitions, overtook float64
	shares := results.NewPerClientHistogram()
	for _, c := range r.clients {
		turns := c.granted + c.served
		f.AcquisitionsMin, f.AcquisitionsMax = min(f.AcquisitionsMin, turns), max(f.AcquisitionsMax, turns)
		f.LargestBypass = max(f.LargestBypass, c.bypassed)
		acquisitions += float64(c.granted)
		overtook += float64(c.overtaken)
		sum += float64(turns)
		squares += float64(turns) * float64(turns)
		if err := shares.RecordValue(turns); err != nil {
			return f, fmt.Errorf("record %d acquisitions: %w", turns, err)
		}
	}
	if acquisitions > 0 {
		share := overtook / acquisitions * 100
		f.Overtaken = &share
	}
	if r.openLoop {
		return f, nil
	}
	if err := f.SetPerClient(shares); err != nil {
		return f, err
	}
	f.WorkingSet = workingSet(keys)
	if returns := r.total(func(s *shard) *histogram { return s.reacquireDistances }); returns.TotalCount() > 0 {
		median := returns.ValueAtQuantile(50)
		f.ReacquireDistance = &median
	}
	f.Jain = results.Jain(float64(len(r.clients)), sum, squares)
	return f, nil
}

// ownerSequence follows who acquires a key, at close range.
type ownerSequence struct {
	last     []int64 // by client: its last grant's number; 0 for none
	start    int64   // number of the grant before the block under way; 0 for none
	distinct int64   // clients in it so far
	blocks   int64
	sum      int64 // of the finished blocks' distinct clients
}

func newOwnerSequence(clients int) ownerSequence { return ownerSequence{last: make([]int64, clients)} }

// take notes that grant number n went to a client and returns how many grants
// after its last one. Blocks of as many grants as there are clients are made
// of grants inside the window.
func (t *ownerSequence) take(client int, n int64, inside bool) int64 {
	if len(t.last) == 0 {
		return 0
	}
	var last int64
	stranger := client >= len(t.last) // who takes part for once only
	if !stranger {
		last = t.last[client]
		t.last[client] = n
	}
	switch {
	case !inside:
		t.start = 0
	case stranger:
	case t.start == 0:
		t.start, t.distinct = n-1, 1
	case last <= t.start:
		t.distinct++
	}
	if t.start > 0 && n-t.start == int64(len(t.last)) {
		t.blocks++
		t.sum += t.distinct
		t.start, t.distinct = n, 0
	}
	if last == 0 {
		return 0
	}
	return n - last
}

// workingSet is the average over blocks of consecutive grants; nil without a
// full one.
func workingSet(keys []*Key) *float64 {
	var blocks, sum int64
	for _, k := range keys {
		k.mu.Lock()
		blocks += k.owners.blocks
		sum += k.owners.sum
		k.mu.Unlock()
	}
	if blocks == 0 {
		return nil
	}
	average := float64(sum) / float64(blocks)
	return &average
}
