package results

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"
)

// Record holds counts of a run that are not figures themselves, but from which Run.Compute derives figures. The records
// of several generators can be added up before the figures are computed.
type Record struct {
	Clients int64   `json:"clients" add:"sum"`
	Keys    int64   `json:"keys"`
	AskedNS float64 `json:"asked_ns" add:"sum"` // sum of the requested holds
	// Contended means that every key had a waiting client at all times, and that the lock's capacity is one.
	Contended bool `json:"contended" add:"and"`
	// Granted is the number of leases granted between the first and the last reading of the strategies' own counts.
	// Attempts, WakeUps and Futile are the increases of these counts between the two readings; nil for a strategy that
	// does not count.
	Granted  int64  `json:"granted" add:"sum"`
	Attempts *int64 `json:"attempts"`
	WakeUps  *int64 `json:"wake_ups"`
	Futile   *int64 `json:"futile_wake_ups"`
	// WithoutTurn is the number of clients that waited and had no acquisition; nil in an open loop.
	WithoutTurn *int64 `json:"without_turn,omitempty" add:"sum"`

	// Generators is the number of generators that the record covers; 0 if the run is not part of a session of several
	// generators. Increments is how often these generators incremented the counters under the lock. Counted is the sum of
	// the counters after the last generator had finished; nil if it is not known.
	Generators int64  `json:"generators,omitempty" add:"sum"`
	Increments *int64 `json:"increments,omitempty" add:"sum"`
	Counted    *int64 `json:"counted,omitempty" add:"known"`
	// Leases holds the leases of one of several generators; nil if there are too many, or if some are not known.
	// UncertaintyNS is the largest possible error, in nanoseconds, of a generator's estimate of the server's clock during
	// the run. In a sum of records, Compared means that the leases of all generators were compared on this clock.
	Leases        Leases `json:"leases,omitzero" add:"none"`
	UncertaintyNS int64  `json:"clock_uncertainty_ns,omitempty" add:"max"`
	Compared      bool   `json:"compared,omitempty"`
}

// enoughAcquisitions is the mean number of acquisitions per client below which Jain's index depends mostly on chance.
const enoughAcquisitions = 20

// rounding is the largest rounding error of a gap, in nanoseconds. A gap between −rounding and 0 counts as 0.
const rounding = 1.0

// Compute sets the figures that follow from the record, the histograms and the time accounts. It must be called again
// after Add.
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
		// Holds that began before the window count with their full length, so the mean hold may exceed the time per
		// acquisition. The gap is then unknown.
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

// fairRounds is the number of acquisitions per client that a window needs before a client without an acquisition counts
// as starved. In a fair round, a first-come-first-served lock serves every client once. The second round allows for a
// window that opens during a round, and for requests that do not arrive in the order in which they were sent.
const fairRounds = 2

// starved returns the number of clients without an acquisition. If there are such clients, it returns nil in two cases:
// with fewer than two acquisitions per client, their turn may have come later; with several keys, the queue of their
// key may have been long by chance.
func (r *Run) starved() *int {
	without := r.Record.WithoutTurn
	if without == nil || *without > 0 && (r.Record.Keys > 1 || r.Speed.Served < fairRounds*r.Record.Clients) {
		return nil
	}
	return new(int(*without))
}

// ShortOfARound returns a label if the window was too short for two acquisitions per client and some client had none.
// If any client was served, the label proposes a window that is long enough. It returns no label if starvation can be
// decided, or if the clients are only slots for arrivals.
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

// apart reports whether there are several generators and the audit compared only clients of the same generator.
func (r Run) apart() bool { return r.Record.Generators > 1 && !r.Record.Compared }

// unaudited reports whether exclusion between clients of different generators is untested: their leases were not
// compared, and no counter checked it.
func (r Run) unaudited() bool { return r.apart() && r.Safety.LostUpdates == nil }

// jain returns Jain's index (see Fairness.Jain) of the clients' acquisitions; nil if their mean is below
// enoughAcquisitions.
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

// Add adds another generator's record of the same run, measured on the same servers and in the same window. The tag
// "add" of each field determines how it is added. The caller must then call Compute. A figure that only a single
// process can observe becomes unknown.
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

// probed adds two counts that strategies made of their own work. The count of a generator with no lease may be missing.
// Any other missing count makes the sum unknown.
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

// add adds the leases of another generator to the counts of the servers that both used. The servers' counts include the
// commands of both, so it keeps those of the first generator that has any, minus the cost of the other's readings. The
// result is unknown if a generator with leases has no counts of the servers.
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

// Plus returns the sum of two audits of different keys or different generators.
func (s Safety) Plus(other Safety) Safety {
	addFields(&s, other)
	return s
}

// CountErrors converts counts by error text into a list with the most frequent error first.
func CountErrors(counts map[string]int64) []ErrorCount {
	var list []ErrorCount
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, ErrorCount{text, counts[text]})
	}
	slices.SortStableFunc(list, func(a, b ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// These values of the tag "add" determine how a field is added to the same field of another record. A field without the
// tag keeps its value. The fields of a nested struct have their own tags.
const (
	bySum     = "sum"   // unknown unless both are known
	byKnown   = "known" // sum of the known values
	byMaximum = "max"   // of the known values
	byMinimum = "min"
	byOr      = "or"
	byAnd     = "and"
	byNone    = "none" // it becomes unknown, because only a single process can observe it
)

// addFields adds the struct more to the struct that sum points to. Both have the same type.
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

// addField adds one field. It never modifies a value through a pointer that another record may share.
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

// added adds two numbers, structs of numbers, or pointers to either. A nil pointer means not known.
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

// addCounts adds two maps of counts by name; nil if either is nil, which means not known.
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
