package results

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// Leases are the packed leases of one generator's clients. Together with the leases of the other generators they show
// whether clients of different generators excluded each other.
type Leases []byte

// Lease is how long a client held a key with a valid lease, from the return of Acquire to the call of Release.
type Lease struct {
	Key         int
	From, Until int64 // µs since the window opened, by the clock of the client's process
	Fenced      bool  // it has a token
	Token       int64
}

// Append packs another lease after the last one, in some six bytes.
func (l Leases) Append(last, next Lease) Leases {
	key := uint64(next.Key) << 1
	if next.Fenced {
		key |= 1
	}
	l = binary.AppendUvarint(l, key)
	l = binary.AppendVarint(l, next.From-last.From)
	l = binary.AppendVarint(l, next.Until-next.From)
	if next.Fenced {
		l = binary.AppendVarint(l, next.Token-last.Token)
	}
	return l
}

// errLeases reports bytes that Append cannot have written.
var errLeases = errors.New("damaged record of leases")

// All unpacks the leases.
func (l Leases) All() iter.Seq2[Lease, error] {
	return func(yield func(Lease, error) bool) {
		last, whole := Lease{}, true
		number := func() int64 {
			n, size := binary.Varint(l)
			whole = whole && size > 0
			l = l[max(0, size):]
			return n
		}
		for len(l) > 0 {
			key, size := binary.Uvarint(l)
			whole = size > 0 && key>>1 < 1<<31
			l = l[max(0, size):]
			lease := Lease{Key: int(key >> 1), From: last.From + number(), Fenced: key&1 == 1}
			if lease.Until = lease.From + number(); lease.Fenced {
				lease.Token = last.Token + number()
			}
			if !whole {
				yield(Lease{}, errLeases)
				return
			}
			if last = lease; !yield(lease, nil) {
				return
			}
		}
	}
}

// MostLeases limits the leases of all generators in a run, so that merging takes at most a few seconds and 300 MB.
const MostLeases = 1 << 20

// placed is a lease on the server's clock, in µs. Its start and its end may each be wrong by up to exact.
type placed struct {
	Lease
	generator int
	exact     int64
	repeats   bool // it has the token of an earlier lease of its key
}

// compare adds to the audit the violations between clients of different generators, whose records are parts. It returns
// the reason if the leases cannot show whether these clients excluded each other; "" if they can.
//
// A client certainly held the lock during its lease, shortened at both ends by the uncertainty of its generator's
// clock. Only this time counts. So each overlap found is real, and overlaps shorter than the uncertainty are missed.
func (r *Run) compare(parts []Run, s Strategy) (why string) {
	r.Record.Leases = nil
	if s.Capacity == 0 {
		return "its strategy admits any number of clients"
	}
	all, why := r.place(parts)
	r.Record.Compared = why == ""
	overlaps, repeated := r.overlaps(all, len(parts), s.Capacity), int64(0)
	if s.Capacity == 1 {
		repeated = regressed(all)
	}
	r.Safety.Overlaps += overlaps
	r.Safety.FencingRegression += repeated
	if overlaps > 0 && s.claims("exclusion") {
		r.Safety.Broken = append(r.Safety.Broken, OverlappedApart.Remark(overlaps))
	}
	if repeated > 0 && s.claims("fencing") {
		r.Safety.Broken = append(r.Safety.Broken, TokensBeforeOther.Remark(repeated))
	}
	return why
}

// place returns the leases of all generators on the server's clock. why is the reason if they cannot show every
// overlap; "" if they can.
func (r *Run) place(parts []Run) (all []placed, why string) {
	for i, p := range parts {
		begun, long := len(all), 0
		if p.Record.Leases == nil {
			return nil, "not all leases are known"
		}
		opened := p.Started.Sub(r.Started).Microseconds()
		// Rounding the instants here and at the server adds 3 µs.
		exact := time.Duration(max(0, p.Record.UncertaintyNS)).Microseconds() + 3
		for lease, err := range p.Record.Leases.All() {
			switch {
			case err != nil:
				return nil, err.Error()
			case len(all) == MostLeases:
				return nil, fmt.Sprintf("there were more than %d leases", MostLeases)
			case lease.Until-lease.From > 2*exact:
				long++
			}
			lease.From, lease.Until = lease.From+opened, lease.Until+opened
			all = append(all, placed{Lease: lease, generator: i, exact: exact})
		}
		if 2*long < len(all)-begun {
			why = "most holds are shorter than the uncertainty of the generators' clocks"
		}
	}
	return all, why
}

// edge is an instant at which the time begins or ends in which a client certainly holds a key.
type edge struct {
	at, key   int64
	generator int32
	begins    int32 // or -1
}

// overlaps counts the acquisitions of a key that was already held to its capacity. It leaves out those where clients of
// the same generator alone held it to its capacity, because that generator has counted them itself.
func (r *Run) overlaps(all []placed, generators, capacity int) (count int64) {
	edges := make([]edge, 0, 2*len(all))
	for _, l := range all {
		if from, until := l.From+l.exact, l.Until-l.exact; from < until {
			key, generator := int64(l.Key), int32(l.generator)
			edges = append(edges, edge{from, key, generator, 1}, edge{until, key, generator, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at), cmp.Compare(a.begins, b.begins))
	})
	holders, own := 0, make([]int, generators)
	for i, e := range edges {
		if e.begins > 0 && holders >= capacity && own[e.generator] < capacity {
			count++
		}
		if holders > capacity && slices.Max(own) <= capacity { // since the previous edge of the same key
			r.Safety.OverlapNS += 1000 * (e.at - edges[i-1].at)
		}
		holders += int(e.begins)
		own[e.generator] += int(e.begins)
		r.Safety.MaxHolders = max(r.Safety.MaxHolders, holders)
	}
	return count
}

// regressed counts the leases whose token was not larger than that of an earlier one. It leaves out those that the
// generator of the lease has counted itself, so that each lease counts once. A lease is earlier if it certainly ended
// before the other one began. If a process stood still, its client may receive a lease after the end of that lease,
// which then counts as begun at its end. Of several leases with the same token all but the first count.
func regressed(all []placed) (count int64) {
	all = slices.DeleteFunc(slices.Clone(all), func(l placed) bool { return !l.Fenced })
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Token, b.Token), cmp.Compare(a.From, b.From))
	})
	for i := 1; i < len(all); i++ {
		all[i].repeats = all[i].Key == all[i-1].Key && all[i].Token == all[i-1].Token
	}
	ended := slices.SortedFunc(slices.Values(all), func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ended(), b.ended()))
	})
	slices.SortFunc(all, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.began(), b.began()))
	})
	highest, own := int64(math.MinInt64), map[int]placed{} // of the key: largest earlier token; newest lease per generator
	for i, l := range all {
		if i > 0 && l.Key != all[i-1].Key {
			highest = math.MinInt64
			clear(own)
		}
		for len(ended) > 0 && (ended[0].Key < l.Key || ended[0].Key == l.Key && ended[0].ended() < l.began()) {
			if ended[0].Key == l.Key {
				highest = max(highest, ended[0].Token)
			}
			ended = ended[1:]
		}
		newest, known := own[l.generator]
		switch {
		case !known || l.Token > newest.Token:
			own[l.generator] = l
		case l.Token == newest.Token || l.Until > newest.From: // as measure.Key counts
			continue
		}
		if l.repeats || l.Token < highest {
			count++
		}
	}
	return count
}

// began is the first instant at which the lease may have been held, ended is the last one.
func (l placed) began() int64 { return min(l.From, l.Until) - l.exact }
func (l placed) ended() int64 { return l.Until + l.exact }
