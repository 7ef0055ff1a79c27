package observe

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// journal stores when clients requested locks and how long they held them. lockbench can replay these requests with
// another lock.
type journal struct {
	arrivals []arrival
	dropped  int64 // number of arrivals for which there was no room
	longest  int64 // longest TTL, ms
	names    int   // total length of the names of keys, bytes
}

// Limits of a journal: the number of arrivals, and the total length of their keys' names, in bytes.
const (
	mostArrivals = workloads.MostArrivals
	mostNames    = 32 << 20
)

// arrival is one request of a client for a lock, from its first try to its release.
type arrival struct {
	at, end int64 // its first try, and its release or last try, µs
	hold    int64 // µs; −1 if it is not known, because the client gave up or the capture ended before the lease
	once    bool  // it tried only once, and failed
	owner   mark
	granted int64 // when it obtained the lock, µs; 0 if it did not
	of      *named
}

// named is the key of an arrival. It stays in the journal after the observer has dropped the key.
type named struct {
	id
	shown string // its name in the trace; "" until trace sets it
	lock  bool   // the key is a lock
	used  bool   // an arrival refers to it
	// renames reports that the library uses a new value after its first try. A single failed try is then not an arrival,
	// because the same client arrives with its next value.
	renames bool
}

func (l *lock) addArrival(a arrival) {
	switch {
	case l.journal == nil:
	case len(l.journal.arrivals) == mostArrivals || !l.of.used && l.journal.names > mostNames:
		l.journal.dropped++
	default:
		if a.of = l.of; !a.of.used {
			a.of.used = true
			l.journal.names += len(a.of.name)
		}
		l.journal.arrivals = append(l.journal.arrivals, a)
	}
}

// leased updates the longest TTL of the journal, in ms.
func (l *lock) leased(ttl int64) {
	const longest = 24 * 3600 * 1000
	if l.journal != nil {
		l.journal.longest = max(l.journal.longest, min(ttl, longest))
	}
}

// Trace is a list of the requests for locks in a capture, which lockbench can replay.
type Trace struct {
	Arrivals []Arrival
	Keys     int
	Unknown  int64         // arrivals without a known hold: the client gave up, or the lease outlasted the capture
	Tries    int64         // single failed tries, which are not in Arrivals because their clients did not wait
	Dropped  int64         // arrivals for which there was no room
	Most     int           // maximum number of clients that waited or held at the same time
	Hold     time.Duration // median of the known holds
	TTL      time.Duration // the longest TTL, or twice the longest hold if that is longer
	Length   time.Duration // duration of the capture
	Seen     time.Time     // time of its first command, by Redis's clock
}

// Arrival is one request of a client for a lock.
type Arrival struct {
	At   time.Duration // since the beginning of the capture
	Key  string
	Hold time.Duration // −1 if it is not known
}

// trace returns the trace of the locks. name converts the name of a key to the name that the user may see.
func (o *observer) trace(name func(string) string) *Trace {
	j := o.journal
	t := &Trace{
		Dropped: j.dropped, TTL: time.Duration(j.longest) * time.Millisecond,
		Length: time.Duration(min(o.now-o.first, math.MaxInt64/2000)) * time.Microsecond,
		Seen:   time.UnixMicro(o.first).UTC(),
	}
	shown, longest := map[string]id{}, time.Duration(0)
	changes, holds := []change{}, []time.Duration{}
	for _, a := range j.arrivals {
		switch {
		case !a.of.lock || a.once && a.of.renames:
			continue
		case a.once:
			t.Tries++
			continue
		case a.of.shown == "":
			a.of.shown = distinct(name(a.of.name), a.of.id, shown)
		}
		seen := Arrival{time.Duration(a.at-o.first) * time.Microsecond, a.of.shown, -1}
		if a.hold >= 0 {
			seen.Hold = time.Duration(a.hold) * time.Microsecond
			longest = max(longest, seen.Hold)
			holds = append(holds, seen.Hold)
		} else {
			t.Unknown++
		}
		t.Arrivals = append(t.Arrivals, seen)
		changes = append(changes, change{a.at, 1}, change{a.end, -1})
	}
	t.Keys, t.Most = len(shown), most(changes)
	if t.TTL > 0 { // a replay may hold for longer than the original, and its leases must not expire
		t.TTL = max(t.TTL, 2*longest)
	}
	if len(holds) > 0 {
		slices.Sort(holds)
		t.Hold = holds[len(holds)/2]
	}
	slices.SortStableFunc(t.Arrivals, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	return t
}

// distinct returns a unique name for a key in the trace. It appends the number of the database unless that number is 0.
// If another key already has the resulting name, it also appends a counter.
func distinct(name string, of id, shown map[string]id) string {
	if of.database > 0 {
		name += fmt.Sprintf(" (db %d)", of.database)
	}
	unique := name
	for n := 2; ; n++ {
		if other, taken := shown[unique]; !taken || other == of {
			shown[unique] = of
			return unique
		}
		unique = fmt.Sprintf("%s #%d", name, n)
	}
}

// change is a change in the number of clients that wait for a lock or hold it. at is its time in µs, and by is 1 or −1.
type change struct{ at, by int64 }

// most returns the maximum number of clients that wait or hold at the same time.
func most(changes []change) int {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.by, b.by)) })
	sum, largest := int64(0), int64(0)
	for _, c := range changes {
		sum += c.by
		largest = max(largest, sum)
	}
	return int(largest)
}

// WriteTrace writes the trace in the format that --arrivals file:PATH reads.
func (d *Document) WriteTrace(w io.Writer) error {
	t, err := d.traced()
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s\n# seen by lockbench observe from %s on, for %v\n", workloads.TraceHeader,
		t.Seen.Format(time.RFC3339), t.Length.Round(time.Millisecond))
	quoted := strings.NewReplacer(`"`, `""`)
	for _, a := range t.Arrivals {
		hold := ""
		if a.Hold >= 0 {
			hold = a.Hold.String()
		}
		fmt.Fprintf(out, "%.6f,\"%s\",%s\n", a.At.Seconds(), quoted.Replace(a.Key), hold)
	}
	return out.Flush()
}

// clientsToSpare is the factor by which a replay has more clients than the capture had at most at the same time. It is
// larger than 1 because another lock may be slower, so that more clients wait.
const clientsToSpare = 4

// WriteWorkload writes a workload file that replays the trace in TraceFile.
func (d *Document) WriteWorkload(w io.Writer) error {
	t, err := d.traced()
	if err != nil {
		return err
	}
	file := struct { // the options of a workload file, in this order
		Description, Arrivals string
		Clients               int
		Hold                  string `yaml:",omitempty"` // for arrivals without a known hold
		TTL                   string `yaml:",omitempty"`
	}{
		Description: fmt.Sprintf("%s on %s, captured by lockbench observe over %v", words.Count(len(t.Arrivals), "arrival"),
			words.Count(t.Keys, "lock"), t.Length.Round(time.Millisecond)),
		Arrivals: "file:" + d.TraceFile,
		Clients:  max(workloads.DefaultInstances, clientsToSpare*t.Most),
	}
	if t.Hold > 0 && t.Unknown > 0 {
		file.Hold = t.Hold.String()
	}
	if t.TTL > 0 {
		file.TTL = t.TTL.String()
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return fmt.Errorf("write the workload: %w", err)
	}
	_, err = w.Write(text)
	return err
}

// noteTrace adds findings about what the trace leaves out.
func (d *Document) noteTrace() {
	t := d.trace
	if t.Unknown > 0 {
		d.Findings = append(d.Findings, Finding{Says: fmt.Sprintf("the trace has %s, %s of them without a known hold: "+
			"the client gave up, or its lease outlasted the capture. A replay uses the median hold for them",
			words.Count(len(t.Arrivals), "arrival"), results.Whole(float64(t.Unknown)))})
	}
	if t.Tries > 0 {
		d.Findings = append(d.Findings, Finding{Says: fmt.Sprintf("the trace leaves out %s of clients that did "+
			"not wait", words.Count(int(t.Tries), "failed attempt"))})
	}
	if t.Dropped > 0 {
		d.Findings = append(d.Findings, Finding{Says: fmt.Sprintf("the trace leaves out %s, because a trace can contain at "+
			"most %d", words.Count(int(t.Dropped), "further arrival"), mostArrivals)})
	}
}

// traced returns the trace, or an error that reports why the trace cannot be replayed.
func (d *Document) traced() (*Trace, error) {
	const fewest = 2
	switch t := d.trace; {
	case t != nil && t.Length > workloads.LongestTrace:
		return nil, fmt.Errorf("the capture covers %v, but a trace can cover at most %v: capture a shorter time", t.Length,
			workloads.LongestTrace)
	case t != nil && len(t.Arrivals) >= fewest:
		return t, nil
	}
	return nil, fmt.Errorf("the capture has fewer than %d arrivals at locks, too few to replay", fewest)
}
