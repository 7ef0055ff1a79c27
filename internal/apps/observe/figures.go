package observe

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// tally is a histogram of durations in ns. It maps the largest value of each bin to the number of durations in the bin.
// A bin is narrower than 0.8 % of its values. The tallies of thousands of locks need little memory.
type tally map[int64]int64

// add counts a duration in µs.
func (t *tally) add(us int64) {
	if *t == nil {
		*t = tally{}
	}
	const exact = 8 // bits
	ns := max(us, 0) * 1000
	width := max(0, bits.Len64(uint64(ns))-exact)
	(*t)[(ns>>width+1)<<width-1]++
}

func (t *tally) merge(other tally) {
	if *t == nil && len(other) > 0 {
		*t = tally{}
	}
	for to, n := range other {
		(*t)[to] += n
	}
}

// histogram converts the tally to the type that package results uses.
func (t tally) histogram() results.Histogram {
	var h results.Histogram
	for _, to := range slices.Sorted(maps.Keys(t)) {
		h = append(h, results.Bin{To: to, Count: t[to]})
	}
	return h
}

// durations are the holds, the waits or the gaps of a lock, in separate tallies by how they ended. Only the durations
// in ended are known in full. All others are lower bounds.
type durations struct {
	ended, gaveUp, open tally
	longest             results.Bound
	sum                 int64 // µs, of ended
}

// end counts a duration in µs that ended during the capture.
func (d *durations) end(us int64) {
	d.ended.add(us)
	d.sum += max(us, 0)
	d.note(us, false)
}

// stay counts a duration in µs that was still open at the end of the capture.
func (d *durations) stay(us int64) {
	d.open.add(us)
	d.note(us, true)
}

// giveUp counts the wait, in µs, of a client that stopped trying. The wait that this client would have needed to get
// the lock is at least as long.
func (d *durations) giveUp(us int64) {
	d.gaveUp.add(us)
	d.note(us, true)
}

func (d *durations) note(us int64, open bool) {
	d.longest = *results.Longest(&d.longest, &results.Bound{NS: max(us, 0) * 1000, AtLeast: open})
}

func (d *durations) merge(other durations) {
	d.ended.merge(other.ended)
	d.gaveUp.merge(other.gaveUp)
	d.open.merge(other.open)
	d.longest = *results.Longest(&d.longest, &other.longest)
	d.sum += other.sum
}

// distribution converts the durations to the type that package results uses.
func (d durations) distribution() results.Distribution {
	var longest *results.Bound
	if len(d.ended)+len(d.gaveUp)+len(d.open) > 0 {
		longest = &d.longest
	}
	described := results.Describe(results.Observations{
		Ended: d.ended.histogram(), GaveUp: d.gaveUp.histogram(), Open: d.open.histogram(),
	}, longest)
	if described.Count > 0 {
		described.MeanNS = new(float64(d.sum) * 1000 / float64(described.Count))
	}
	return described
}

// figures are the counts and durations of one lock, or the sums over several locks.
type figures struct {
	Counts

	holds, waits durations
	gaps         durations // from a release to the next grant, while clients waited
	heldUS       int64     // total time for which the lock was held
	waitedUS     int64     // sum of all waits

	compared     int64 // deletes that compared the owner in the same step
	apart        int64 // deletes after a separate GET
	plain        int64 // deletes without a GET
	hashed       int64 // grants of locks that are hashes
	counted      int64 // commands of semaphores
	read         int64 // reads by clients, except those before a delete
	again        int64 // tries by an owner that had tried less than soon before
	continued    int64 // owners that tried a second time
	signals      int64 // blocking pops of the lock's signal
	idleCommands int64 // commands of idle releases
	pauses       tally // between two tries of a wait
	shapes       [len(shapes)]int64
}

// Counts counts the operations and faults of a lock. The document lists these counts, and thresholds limit them.
type Counts struct {
	Acquisitions int64 `json:"acquisitions"`
	Tries        int64 `json:"tries"`
	Commands     int64 `json:"commands"` // of clients and of scripts, on the lock and its queues, signals and channels
	Releases     int64 `json:"releases"` // leases that ended by a delete
	Renewals     int64 `json:"renewals"`
	// Expired counts leases that ended by their TTL. LateReleases counts releases that arrived after the end of their
	// lease.
	Expired      int64 `json:"expired"`
	LateReleases int64 `json:"late_releases"`
	// OthersDeleted counts deletes without a compare that ended the lease of another client. Overwritten counts leases
	// that a SET without NX replaced.
	OthersDeleted int64 `json:"others_deleted"`
	Overwritten   int64 `json:"overwritten"`
	// UnsafeReleases counts deletes of a lease without a compare of the owner in the same step.
	UnsafeReleases int64 `json:"unsafe_releases"`
	WithoutNX      int64 `json:"without_nx"`  // leases that a SET without NX began
	WithoutTTL     int64 `json:"without_ttl"` // leases without a TTL
	TTLApart       int64 `json:"ttl_apart"`   // leases that got their TTL by a second command
	// RenewalsStopped counts leases that were renewed and still ended by their TTL.
	RenewalsStopped int64 `json:"renewals_stopped"`
	// SharedValue counts tries with the value of the current holder. Such a try shows that several clients use this value.
	SharedValue int64 `json:"shared_value"`
	IdleRelease int64 `json:"idle_releases"` // releases that released nothing
	GaveUp      int64 `json:"gave_up"`       // waits of several tries whose client stopped trying
	TriedOnce   int64 `json:"tried_once"`    // waits of a single try whose client did not try again
	Open        int64 `json:"open_waits"`    // waits that were open at the end of the capture
	AtStart     int64 `json:"held_at_start"` // releases of leases that were granted before the capture
	// Nameless is 1 if the lock's name contains undefined, null or None, which shows that a variable had no value;
	// otherwise 0.
	Nameless int64 `json:"nameless"`
}

// unsafe returns the number of faults that let two clients hold the lock, or that keep every client from obtaining it.
func (c Counts) unsafe() int64 { return c.OthersDeleted + c.Overwritten + c.WithoutTTL + c.SharedValue }

func (f *figures) add(o *figures) {
	f.Counts.add(o.Counts)
	f.holds.merge(o.holds)
	f.waits.merge(o.waits)
	f.gaps.merge(o.gaps)
	for _, pair := range []struct {
		to *int64
		n  int64
	}{
		{&f.heldUS, o.heldUS},
		{&f.waitedUS, o.waitedUS},
		{&f.compared, o.compared},
		{&f.apart, o.apart},
		{&f.plain, o.plain},
		{&f.hashed, o.hashed},
		{&f.counted, o.counted},
		{&f.read, o.read},
		{&f.again, o.again},
		{&f.signals, o.signals},
		{&f.idleCommands, o.idleCommands},
	} {
		*pair.to += pair.n
	}
	for i, n := range o.shapes {
		f.shapes[i] += n
	}
}

func (c *Counts) add(o Counts) {
	c.Acquisitions += o.Acquisitions
	c.Tries += o.Tries
	c.Commands += o.Commands
	c.Releases += o.Releases
	c.Renewals += o.Renewals
	c.Expired += o.Expired
	c.LateReleases += o.LateReleases
	c.OthersDeleted += o.OthersDeleted
	c.Overwritten += o.Overwritten
	c.UnsafeReleases += o.UnsafeReleases
	c.WithoutNX += o.WithoutNX
	c.WithoutTTL += o.WithoutTTL
	c.TTLApart += o.TTLApart
	c.RenewalsStopped += o.RenewalsStopped
	c.SharedValue += o.SharedValue
	c.IdleRelease += o.IdleRelease
	c.GaveUp += o.GaveUp
	c.TriedOnce += o.TriedOnce
	c.Open += o.Open
	c.AtStart += o.AtStart
	c.Nameless += o.Nameless
}
