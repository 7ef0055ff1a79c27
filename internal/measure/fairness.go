package measure

import (
	"math"

	"github.com/lockbench/lockbench/results"
)

// fairness adds figures to f, which holds the acquisitions per client, and returns the result. The figures describe how
// the clients shared the acquisitions, over the whole window and over short sequences of grants.
func (r *Recorder) fairness(f results.Fairness, keys []*Key) results.Fairness {
	f.AcquisitionsMin, f.LongestWait = math.MaxInt64, r.longest()
	var acquisitions, overtook float64
	var bypass int64
	for _, c := range r.clients {
		turns := c.granted + c.served
		f.AcquisitionsMin, f.AcquisitionsMax = min(f.AcquisitionsMin, turns), max(f.AcquisitionsMax, turns)
		bypass = max(bypass, c.bypassed)
		acquisitions += float64(c.granted)
		overtook += float64(c.overtaken)
	}
	if acquisitions > 0 {
		f.Overtaken = new(overtook / acquisitions * 100)
	}
	f.LargestBypass, f.PassesWithin = &bypass, passesWithin(keys)
	if r.openLoop {
		return f
	}
	f.WorkingSet = workingSet(keys)
	f.ReacquireDistance = r.sum(func(s *shard) *histogram { return s.reacquireDistances }).Median()
	return f
}

// ownerSequence counts how many distinct clients acquire a key in blocks of consecutive grants.
type ownerSequence struct {
	last     []int64 // by client: the number of its last grant; 0 for none
	start    int64   // number of the grant before the current block; 0 for none
	distinct int64   // clients in the current block so far
	blocks   int64
	sum      int64 // sum of distinct over the complete blocks
}

func newOwnerSequence(clients int) ownerSequence { return ownerSequence{last: make([]int64, clients)} }

// take records that a client received grant number n. It returns the number of grants since that client's last grant; 0
// for the client's first grant. The grants inside the window form blocks whose length is the number of clients.
func (t *ownerSequence) take(client int, n int64, inside bool) int64 {
	if len(t.last) == 0 {
		return 0
	}
	var last int64
	stranger := client >= len(t.last) // a fault target, which acquires only once
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

// workingSet returns the average number of distinct clients in a block of consecutive grants; nil without a complete
// block.
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
	return new(float64(sum) / float64(blocks))
}

// passes counts how often a key passed from one client to another, and in how many of these cases both clients belonged
// to the same application instance.
type passes struct {
	instances   int // client i belongs to instance i mod instances; 0 disables the count
	clients     int // clients with larger numbers are fault targets, each in a separate instance
	last        int // the latest owner + 1; 0 before the first
	all, within int64
}

// Across enables the count of passes for a key that only one client may hold. Client i belongs to instance i mod
// instances.
func (k *Key) Across(instances, clients int) {
	if k.capacity == 1 {
		k.passes = passes{instances: instances, clients: clients}
	}
}

// take records that a client acquired the key. inside reports whether that was in the window.
func (p *passes) take(client int, inside bool) {
	if p.instances == 0 {
		return
	}
	before := p.last - 1
	p.last = client + 1
	if before < 0 || before == client || !inside {
		return
	}
	p.all++
	if before < p.clients && client < p.clients && before%p.instances == client%p.instances {
		p.within++
	}
}

// passesWithin returns the share of passes, in percent, that stayed within an instance; nil without passes.
func passesWithin(keys []*Key) *float64 {
	var all, within int64
	for _, k := range keys {
		k.mu.Lock()
		all, within = all+k.passes.all, within+k.passes.within
		k.mu.Unlock()
	}
	if all == 0 {
		return nil
	}
	return new(float64(within) / float64(all) * 100)
}

// withoutTurn returns the number of clients that waited and had no acquisition in the window.
func (r *Recorder) withoutTurn() *int64 {
	count := int64(0)
	for _, c := range r.clients {
		if c.granted+c.served == 0 && (c.longest > 0 || c.open) { // a client that never waited cannot starve
			count++
		}
	}
	return &count
}

// Unserved returns the number of clients that wait and have had no acquisition in the window; nil in an open loop,
// where clients are slots for arrivals.
func (r *Recorder) Unserved(waiting []results.Wait) *int64 {
	if r.openLoop {
		return nil
	}
	count := int64(0)
	for _, w := range waiting {
		c := r.clients[w.Client]
		c.shard.mu.Lock()
		if c.granted+c.served == 0 {
			count++
		}
		c.shard.mu.Unlock()
	}
	return &count
}
