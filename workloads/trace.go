package workloads

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/untrusted"
)

// Arrivals is the process by which acquisitions of an open loop arrive. Its text form is:
//
//	poisson             exponential gaps, like those of independent users
//	constant            equal gaps
//	file:arrivals.csv   the arrivals of a trace, repeated
//
// The zero Arrivals is constant.
type Arrivals struct {
	kind, file string
	trace      *Trace
}

var (
	// ArrivalsConstant has equal gaps between arrivals.
	ArrivalsConstant = Arrivals{}
	// ArrivalsPoisson has exponentially distributed gaps between arrivals, like those of independent users.
	ArrivalsPoisson = Arrivals{kind: "poisson"}
)

// String returns the text form (see Arrivals).
func (a Arrivals) String() string {
	switch a.kind {
	case "file":
		return "file:" + untrusted.Printable(a.file)
	case "":
		return "constant"
	}
	return a.kind
}

// MarshalText returns the same text as String.
func (a Arrivals) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText parses the text form (see Arrivals). It does not read the named file, because a report may be read on a
// machine without the file.
func (a *Arrivals) UnmarshalText(text []byte) error {
	kind, file, named := strings.Cut(string(text), ":")
	switch {
	case kind == "file" && file != "":
		*a = Arrivals{kind: kind, file: file}
	case !named && kind == "constant":
		*a = ArrivalsConstant
	case !named && kind == "poisson":
		*a = ArrivalsPoisson
	default:
		return fmt.Errorf("arrivals must be constant, poisson or file:PATH, not %q", text)
	}
	return nil
}

// Equal reports whether two Arrivals have the same text form.
func (a Arrivals) Equal(other Arrivals) bool { return a.String() == other.String() }

// File returns the name of the file that Load reads; "" if there is none.
func (a Arrivals) File() string { return a.file }

// Trace returns the trace that Load has read; nil if the arrivals name no file or Load has not been called.
func (a Arrivals) Trace() *Trace { return a.trace }

// Load reads the trace from the file that the arrivals name, if any. Its error does not quote the file's content.
func (a *Arrivals) Load() error {
	if a.kind != "file" || a.trace != nil {
		return nil
	}
	text, err := untrusted.ReadFile(a.file)
	if err != nil {
		return err
	}
	a.trace, err = readTrace(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", a.file, err)
	}
	return nil
}

// Arrival is one arrival of a trace: its time, its key and its hold.
type Arrival struct {
	At   time.Duration // since the trace began
	Key  int           // from 0, in the order of first appearance
	Hold time.Duration // hold of the lock; −1 if the trace has none
}

// Trace is a sequence of arrivals, such as those at a service's locks that the command "lockbench observe" recorded.
type Trace struct {
	Arrivals []Arrival     // in their order
	Length   time.Duration // time after which the trace repeats
	Keys     int           // number of different keys
}

// Rate returns the mean number of arrivals per second.
func (t *Trace) Rate() Rate { return Rate(float64(len(t.Arrivals)) / t.Length.Seconds()) }

// rounded returns the rate rounded to four significant digits, so that it is easy to read and type.
func (r Rate) rounded() Rate {
	text := strconv.FormatFloat(float64(r), 'e', 3, 64)
	rounded, _ := strconv.ParseFloat(text, 64) // FormatFloat wrote it, so it parses
	return Rate(rounded)
}

// TraceHeader is the first line of a trace's file. Each further line has three fields: the seconds since the beginning
// of the trace, the name of a key, and a hold such as 5ms. The name may be empty. If the hold is empty, the workload's
// hold applies.
const TraceHeader = "seconds,key,hold"

// MostArrivals is the largest number of arrivals in a trace. A longer trace is an error.
const MostArrivals = 500_000

// LongestTrace is the longest duration of a trace. Up to this limit, a float64 represents instants in nanoseconds
// exactly.
const LongestTrace = 7 * 24 * time.Hour

// readTrace parses a trace's file. The length of the trace is the time of its last arrival plus the mean gap between
// arrivals.
func readTrace(text string) (*Trace, error) {
	lines := csv.NewReader(strings.NewReader(text))
	lines.Comment, lines.FieldsPerRecord, lines.ReuseRecord = '#', 3, true
	header, err := lines.Read()
	if err != nil || strings.Join(header, ",") != TraceHeader {
		return nil, fmt.Errorf("the first line must be %s", TraceHeader)
	}
	t, keys := &Trace{}, map[string]int{}
	for {
		if len(t.Arrivals) > MostArrivals {
			return nil, fmt.Errorf("the trace has more than %d arrivals: shorten it", MostArrivals)
		}
		fields, err := lines.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line, _ := lines.FieldPos(0)
		if err != nil {
			return nil, fmt.Errorf("line %d must have three fields, %s", line, TraceHeader)
		}
		arrival, err := readArrival(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if n := len(t.Arrivals); n > 0 && arrival.At < t.Arrivals[n-1].At {
			return nil, fmt.Errorf("line %d has an earlier time than the line before it: sort the lines by time", line)
		}
		key, known := keys[fields[1]]
		if !known {
			key = len(keys)
			keys[strings.Clone(fields[1])] = key
		}
		arrival.Key = key
		t.Arrivals = append(t.Arrivals, arrival)
	}
	n := len(t.Arrivals)
	if n < 2 || t.Arrivals[n-1].At == 0 {
		return nil, errors.New("the trace needs at least two arrivals, at different times")
	}
	last := t.Arrivals[n-1].At
	t.Keys, t.Length = len(keys), last+(last-t.Arrivals[0].At)/time.Duration(n-1)
	return t, nil
}

func readArrival(fields []string) (Arrival, error) {
	seconds, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(seconds >= 0 && seconds <= LongestTrace.Seconds()) {
		return Arrival{}, fmt.Errorf("the time must be a number of seconds from 0 to %.0f", LongestTrace.Seconds())
	}
	a := Arrival{At: time.Duration(math.Round(seconds * 1e9)), Hold: -1}
	if fields[2] != "" {
		if a.Hold, err = time.ParseDuration(fields[2]); err != nil || a.Hold < 0 || a.Hold > LongestTrace {
			return Arrival{}, fmt.Errorf("the hold must be a duration such as 5ms, at most %v, or empty", LongestTrace)
		}
	}
	return a, nil
}
