package results

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// Record is what a run counted in addition to the histograms and counters in its other parts. Records add up, and
// Compute computes the figures from them, for one generator or the sum of several.
type Record struct {
	Clients int64   `json:"clients" add:"sum"`
	Keys    int64   `json:"keys"`
	AskedNS float64 `json:"asked_ns" add:"sum"` // sum of the holds that the workload asked for
	// Contended says that clients always waited for every key of a lock of capacity one.
	Contended bool `json:"contended" add:"and"`
	// Granted leases came with these attempts and wake-ups of the strategies, between two readings.
	// nil for a black box.
	Granted  int64  `json:"granted" add:"sum"`
	Attempts *int64 `json:"attempts"`
	WakeUps  *int64 `json:"wake_ups"`
	Futile   *int64 `json:"futile_wake_ups"`
	// WithoutTurn is the number of clients that waited and had no acquisition; nil in an open loop.
	WithoutTurn *int64 `json:"without_turn,omitempty" add:"sum"`

	// Generators is their number, if the run is of several. They made these increments under the lock, of which the
	// counters held Counted after the last of them had left; nil if that is not known.
	Generators int64  `json:"generators,omitempty" add:"sum"`
	Increments *int64 `json:"increments,omitempty" add:"sum"`
	Counted    *int64 `json:"counted,omitempty" add:"known"`
	// Leases are those of one of several generators; nil if they are too many, or not all known. In the sum Compared
	// says that those of all were compared, by the server's clock. They knew it as exactly as UncertaintyNS, all run.
	Leases        Leases `json:"leases,omitzero" add:"none"`
	UncertaintyNS int64  `json:"clock_uncertainty_ns,omitempty" add:"max"`
	Compared      bool   `json:"compared,omitempty"`
}

// enoughAcquisitions is the mean number per client from which on Jain's index is not mere chance.
const enoughAcquisitions = 20

// rounding is, in nanoseconds, how far below 0 a gap may be that is none.
const rounding = 1.0

// Compute sets the figures that follow from the record, the histograms and the time accounts.
func (r *Run) Compute() {
	for _, d := range r.distributions() {
		d.figures()
	}
	s, record := &r.Speed, r.Record
	s.PerSecond, s.ServedPerSecond, s.Utilisation = 0, 0, 0
	if seconds := float64(r.WindowNS) / 1e9; seconds > 0 {
		s.PerSecond = float64(s.Acquisitions) / seconds
		s.ServedPerSecond = float64(s.Served) / seconds
		s.Utilisation = r.TimeAccounting.Hold / seconds / float64(max(1, record.Keys))
	}
	s.HoldAsked, s.Gap = nil, nil
	if s.Hold.Count > 0 && record.AskedNS > 0 {
		s.HoldAsked = new(record.AskedNS / float64(s.Hold.Count))
	}
	if record.Contended && s.Hold.MeanNS != nil && s.Acquisitions > 0 {
		// Holds that began before the window count with their full length, so the mean may be longer than there is
		// room for: then nothing is known of the rest.
		gap := float64(record.Keys)*float64(r.WindowNS)/float64(s.Acquisitions) - *s.Hold.MeanNS
		if gap > -rounding {
			s.Gap = new(max(0, gap))
		}
	}
	perAcquisition := func(n *int64) *float64 {
		if n == nil || record.Granted == 0 {
			return nil
		}
		return new(float64(*n) / float64(record.Granted))
	}
	r.Effort = Effort{perAcquisition(record.Attempts), perAcquisition(record.WakeUps), perAcquisition(record.Futile)}
	r.Fairness.Jain = jain(r.Fairness.PerClient)
	r.Fairness.Starved = r.starved()
	if record.Generators > 1 && record.Increments != nil && record.Counted != nil {
		r.Safety.LostUpdates = new(max(0, *record.Increments-*record.Counted))
	}
}

// fairRounds is how many fair rounds a window needs before a client without an acquisition counts as starved. A
// first-come-first-served lock serves every client once in one round. The second round allows for a window that opens
// within a round, and for requests that arrive in another order than they were sent.
const fairRounds = 2

// starved returns the clients without an acquisition although the window had room for two fair rounds. It is nil if
// this is undecided: a client may only not have had its turn yet. With several keys the queue of its key may have been
// long by chance.
func (r *Run) starved() *int {
	without := r.Record.WithoutTurn
	if without == nil || *without > 0 && (r.Record.Keys > 1 || r.Speed.Served < fairRounds*r.Record.Clients) {
		return nil
	}
	return new(int(*without))
}

// ShortOfARound returns a label if the window was too short for every client to have one acquisition; the label names a
// window that is long enough. There is none if starvation can be decided, and where clients are only slots.
func (r *Run) ShortOfARound() Remarks {
	served, enough := r.Speed.Served, fairRounds*r.Record.Clients
	switch {
	case r.WindowNS == 0 || r.Record.WithoutTurn == nil || r.Fairness.Starved != nil || served >= enough:
		return nil
	case served == 0:
		return Remarks{ShortWindow.Remark(served, r.Record.Clients)}
	}
	const spare = 1.1
	longer := time.Duration(r.WindowNS).Seconds() * float64(enough) / float64(served) * spare
	return Remarks{ShortOfARound.Remark(served, r.Record.Clients, time.Duration(math.Ceil(longer))*time.Second)}
}

// apart reports whether the audit is of each generator's own clients.
func (r Run) apart() bool { return r.Record.Generators > 1 && !r.Record.Compared }

// unaudited reports whether exclusion between clients of different generators is untested: their leases were not
// compared, and no counter checked it.
func (r Run) unaudited() bool { return r.apart() && r.Safety.LostUpdates == nil }

// jain returns Jain's index, see Fairness, of the clients' acquisitions; nil if there are too few.
func jain(perClient Histogram) *float64 {
	var clients, sum, squares float64
	for _, b := range perClient {
		n, x := float64(b.Count), b.middle()
		clients, sum, squares = clients+n, sum+n*x, squares+n*x*x
	}
	if clients == 0 || sum < enoughAcquisitions*clients {
		return nil
	}
	return new(sum * sum / (clients * squares))
}

// Add adds what another generator recorded of the same run, on the same servers in the same window, as the fields'
// tags say; Compute then computes the figures. What only a single process can observe on both sides becomes
// unknown.
func (r *Run) Add(other Run) {
	record, more := &r.Record, other.Record
	share := float64(more.Clients) / float64(max(1, record.Clients+more.Clients))
	r.WindowNS += int64(math.Round(share * float64(other.WindowNS-r.WindowNS)))
	r.Server.add(other.Server, r.Speed.Acquisitions, other.Speed.Acquisitions)
	record.Attempts = r.probed(record.Attempts, other, more.Attempts)
	record.WakeUps = r.probed(record.WakeUps, other, more.WakeUps)
	record.Futile = r.probed(record.Futile, other, more.Futile)
	counts := map[string]int64{}
	for _, e := range slices.Concat(r.Errors, other.Errors) {
		counts[e.Error] += e.Count
	}
	r.Errors = CountErrors(counts)
	addFields(r, other)
	r.Safety.LostUpdates = nil
}

// probed adds a count of the strategies. A generator without any lease does not need one.
func (r *Run) probed(count *int64, other Run, more *int64) *int64 {
	switch {
	case other.Speed.Acquisitions == 0 && more == nil:
		return count
	case r.Speed.Acquisitions == 0 && count == nil:
		return more
	case count == nil || more == nil:
		return nil
	}
	return new(*count + *more)
}

// add adds the reading of another generator of the same servers. The sum has the counts of the first generator with a
// reading, minus the cost of the other's readings, and the leases of both. It is unknown if a generator with leases has
// no reading.
func (s *Server) add(other Server, granted, more int64) {
	first := cmp.Or(s.Window, other.Window)
	if first == nil || s.Window == nil && granted > 0 || other.Window == nil && more > 0 {
		s.Window = nil
		return
	}
	sum, second := *first, ServerDelta{} // without a window of the other, nothing is added
	if s.Window != nil && other.Window != nil {
		second = *other.Window
		if second.Own != nil {
			sum.subtract(*second.Own)
		}
	}
	addFields(&sum, second)
	s.Window = &sum
}

// Plus adds what was seen on other keys, or by another generator.
func (s Safety) Plus(other Safety) Safety {
	addFields(&s, other)
	return s
}

// CountErrors lists the counts of errors, the most frequent first.
func CountErrors(counts map[string]int64) []ErrorCount {
	var list []ErrorCount
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, ErrorCount{text, counts[text]})
	}
	slices.SortStableFunc(list, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// The ways in which a field is added to that of another record, in its tag "add". A field without this tag
// stays as it is; the fields of a struct have tags of their own.
const (
	bySum     = "sum"   // not known unless both are
	byKnown   = "known" // the sum of what is known
	byMaximum = "max"   // of what is known
	byMinimum = "min"
	byOr      = "or"
	byAnd     = "and"
	byNone    = "none" // it becomes unknown, because only a single process can observe it
)

// addFields adds a struct to the one at sum, which is of the same type.
func addFields(sum, more any) { addStruct(reflect.ValueOf(sum).Elem(), reflect.ValueOf(more)) }

func addStruct(sum, more reflect.Value) {
	for i := range sum.NumField() {
		field, other := sum.Field(i), more.Field(i)
		switch how := sum.Type().Field(i).Tag.Get("add"); {
		case how == byNone:
			field.SetZero()
		case how != "":
			addField(how, field, other)
		case field.Kind() == reflect.Struct:
			addStruct(field, other)
		}
	}
}

// addField changes nothing that another record points to.
func addField(how string, sum, more reflect.Value) {
	switch s := sum.Addr().Interface().(type) {
	case *Distribution:
		s.add(more.Interface().(Distribution))
	case *Histogram:
		*s = s.Plus(more.Interface().(Histogram))
	case **Bound:
		*s = Longest(*s, more.Interface().(*Bound))
	case *bool:
		*s = how == byOr && (*s || more.Bool()) || how == byAnd && *s && more.Bool()
	case *Remarks:
		*s = slices.Concat(*s, more.Interface().(Remarks))
	case *[]string:
		*s = slices.Concat(*s, more.Interface().([]string))
	case *map[string]int64:
		*s = addCounts(*s, more.Interface().(map[string]int64))
	default:
		sum.Set(added(how, sum, more))
	}
}

// added adds numbers, structs of them, and pointers to either, of which nil is not known.
func added(how string, a, b reflect.Value) reflect.Value {
	sum := reflect.New(a.Type()).Elem()
	switch {
	case a.Kind() != reflect.Pointer:
		sum.Set(a)
	case how == bySum && (a.IsNil() || b.IsNil()), b.IsNil() && a.IsNil():
		return sum
	case b.IsNil():
		return a
	case a.IsNil():
		return b
	}
	switch {
	case a.Kind() == reflect.Pointer:
		sum.Set(reflect.New(a.Type().Elem()))
		sum.Elem().Set(added(how, a.Elem(), b.Elem()))
	case a.Kind() == reflect.Struct:
		addStruct(sum, b)
	case a.CanInt():
		sum.SetInt(addNumbers(how, a.Int(), b.Int()))
	default:
		sum.SetFloat(addNumbers(how, a.Float(), b.Float()))
	}
	return sum
}

func addNumbers[N int64 | float64](how string, a, b N) N {
	switch how {
	case byMaximum:
		return max(a, b)
	case byMinimum:
		return min(a, b)
	}
	return a + b
}

// addCounts adds counts by name; nil if one of the two is not known.
func addCounts(a, b map[string]int64) map[string]int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := maps.Clone(a)
	for name, n := range b {
		sum[name] += n
	}
	return sum
}
