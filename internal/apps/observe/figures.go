package observe

import (
	"maps"
	"math/bits"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// tally counts durations by their length in bins whose values differ by less than 0.4 %, so that thousands of locks
// take little memory.
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

// merge adds the durations of another.
func (t *tally) merge(other tally) {
	if *t == nil && len(other) > 0 {
		*t = tally{}
	}
	for to, n := range other {
		(*t)[to] += n
	}
}

// histogram returns the durations as reports have them.
func (t tally) histogram() results.Histogram {
	var h results.Histogram
	for _, to := range slices.Sorted(maps.Keys(t)) {
		h = append(h, results.Bin{To: to, Count: t[to]})
	}
	return h
}

// durations are holds or waits.
type durations struct {
	ended, gaveUp, open tally
	longest             results.Bound
	sum                 int64 // µs, of those that were seen to end
}

// end counts a duration that was seen to end, in µs.
func (d *durations) end(us int64) {
	d.ended.add(us)
	d.sum += max(us, 0)
	d.note(us, false)
}

// stay counts a duration that had not ended when the capture did.
func (d *durations) stay(us int64) {
	d.open.add(us)
	d.note(us, true)
}

// giveUp counts a wait that ended without the lock.
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

// distribution returns the durations as reports have them.
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

// figures count what happened to a lock, or to several.
type figures struct {
	Counts

	holds, waits durations
	gaps         durations // from a release to the next grant, while clients waited
	heldUS       int64     // the lock was held
	waitedUS     int64     // clients waited, in all

	compared     int64 // deletes after the owner was compared in one step
	apart        int64 // deletes after a GET
	plain        int64 // deletes without
	hashed       int64 // grants of locks that are hashes
	counted      int64 // commands of semaphores
	read         int64 // by clients, other than before a delete
	again        int64 // tries by an owner that had tried before
	continued    int64 // owners that tried again after a first try in vain, or got the lock then
	signals      int64 // waits in BLPOP for what belongs to the lock
	idleCommands int64 // of the releases that released nothing
	pauses       tally // between two tries of a wait
	shapes       [len(shapes)]int64
}

// Counts are what a document says of a lock in numbers.
type Counts struct {
	Acquisitions int64 `json:"acquisitions"`
	Tries        int64 `json:"tries"`
	Commands     int64 `json:"commands"` // of clients and of their scripts, on the lock and what belongs to it
	Releases     int64 `json:"releases"` // leases that ended by a delete
	Renewals     int64 `json:"renewals"`
	// Expired leases ended by their TTL. LateReleases were of those: the release found that the lease had ended.
	Expired      int64 `json:"expired"`
	LateReleases int64 `json:"late_releases"`
	// OthersDeleted counts deletes without compare that hit the lease of another, Overwritten the leases that a SET
	// without NX replaced.
	OthersDeleted int64 `json:"others_deleted"`
	Overwritten   int64 `json:"overwritten"`
	// UnsafeReleases counts deletes of a lease without a compare of the owner in the same step.
	UnsafeReleases int64 `json:"unsafe_releases"`
	WithoutNX      int64 `json:"without_nx"`  // leases that a SET without NX began
	WithoutTTL     int64 `json:"without_ttl"` // leases
	TTLApart       int64 `json:"ttl_apart"`   // leases that got their TTL by a second command
	// RenewalsStopped counts leases that were renewed and still ended by their TTL.
	RenewalsStopped int64 `json:"renewals_stopped"`
	// SharedValue counts tries by the value that had the lock: several clients have one value.
	SharedValue int64 `json:"shared_value"`
	IdleRelease int64 `json:"idle_releases"` // releases that released nothing
	GaveUp      int64 `json:"gave_up"`       // waits of several tries whose client stopped asking
	TriedOnce   int64 `json:"tried_once"`    // the same of a single try
	Open        int64 `json:"open_waits"`    // at the end of the capture
	AtStart     int64 `json:"held_at_start"` // releases of leases that were granted before the capture
	// Nameless is 1 for a lock in whose name a part is undefined, null or None: a variable without a value.
	Nameless int64 `json:"nameless"`
}

// unsafe counts what breaks a lock.
func (c Counts) unsafe() int64 { return c.OthersDeleted + c.Overwritten + c.WithoutTTL + c.SharedValue }

// add adds the figures of another lock.
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
