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

// Leases holds the leases of one generator's clients in packed form. The leases of all generators together show whether
// clients of different generators excluded each other.
type Leases []byte

// Lease is a period in which a client held a key with a valid lease: from the return of Acquire to the call of Release.
type Lease struct {
	Key         int
	From, Until int64 // µs since the window opened, by the clock of the client's process
	Fenced      bool  // it has a token
	Token       int64
}

// Append appends the lease next, packed as its difference from last, the lease before it. A difference takes about six
// bytes.
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

// errLeases means that the bytes are damaged, because Append cannot have written them.
var errLeases = errors.New("damaged record of leases")

// All yields the leases in their order. If the bytes are damaged, it yields errLeases and stops.
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

// placed is a lease on the server's clock, in µs. exact, also in µs, is the largest error of its start and of its end.
type placed struct {
	Lease
	generator int
	exact     int64
	repeats   bool // it has the token of an earlier lease of its key
}

// compare adds to the audit of r the violations between clients of different generators. parts are the records of these
// generators. It returns the reason if the leases cannot show whether these clients excluded each other; "" if they
// can.
//
// A client certainly held the lock during its lease, shortened at both ends by the uncertainty of its generator's
// clock. Only this time counts. So every overlap that compare finds is real, but it may miss overlaps shorter than the
// uncertainty.
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

// place returns the leases of all generators on the server's clock. If the leases cannot show whether the generators'
// clients excluded each other, why is the reason; otherwise it is "".
func (r *Run) place(parts []Run) (all []placed, why string) {
	for i, p := range parts {
		begun, long := len(all), 0
		if p.Record.Leases == nil {
			return nil, "not all leases are known"
		}
		opened := p.Started.Sub(r.Started).Microseconds()
		// Rounding of times to µs, here and at the server, may add an error of 3 µs.
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

// edge is the beginning or the end of the time in which a client certainly held a key.
type edge struct {
	at, key   int64
	generator int32
	begins    int32 // or -1
}

// overlaps counts the acquisitions of a key that was already held to its capacity. It leaves out an acquisition if
// clients of the same generator already held the key to its capacity, because that generator has counted the overlap
// itself.
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

// regressed counts the leases whose token is not larger than the token of an earlier lease of the key; of several
// leases with the same token it counts all but the first. It leaves out the leases that their own generator has already
// counted. One lease is earlier than another if it certainly ended before the other began. After a process stood still,
// its client may receive a lease that has already ended. Such a lease counts as if it began at its end.
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

// began returns the earliest and ended the latest instant at which the lease may have been held, in µs.
func (l placed) began() int64 { return min(l.From, l.Until) - l.exact }
func (l placed) ended() int64 { return l.Until + l.exact }
