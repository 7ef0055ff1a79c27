package workloads

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/nearest"
)

// Fault is something that goes wrong on purpose in the course of a run. It reads
// and writes itself as text, its options in any order:
//
//	holder-pause:at=2s,for=3s
//	kill:at=3s,for=1s,data=lose
//	waiter-crash:every=5s,n=3
//
// ParseFault fills in what is not said; FaultKinds tells what there is.
type Fault struct {
	Name  string
	At    Duration // for the first time, since the window opened
	Every Duration // and again; 0 is once
	For   Duration // how long it lasts; 0 is what Lasts says

	N         int      // waiters or nodes that are hit
	Command   int      // of an acquisition: the last that is sent
	Data      Data     // what becomes of it
	Node      int      // by its place; of several independent ones the first that is hit
	Lag       Duration // by which a replica is behind; 0 is the TTL
	Instances int      // application instances that are hit; 0 is all
	Delay     Duration // of everything that is sent
	Jitter    Duration // more or less of it
	Rate      int      // KB/s
}

// Data is what becomes of a server's data when it is started again.
type Data string

const (
	// DataLose starts it empty.
	DataLose Data = "lose"
	// DataKeep starts it with what it had when it was killed.
	DataKeep Data = "keep"
)

// ParseFault reads the text form.
func ParseFault(text string) (Fault, error) {
	var f Fault
	err := f.UnmarshalText([]byte(text))
	return f, err
}

// Kind is what there is to know of all faults of this name; it is the zero
// FaultKind for one that does not exist.
func (f Fault) Kind() FaultKind {
	for _, kind := range FaultKinds() {
		if kind.Name == f.Name {
			return kind
		}
	}
	return FaultKind{}
}

// String is the text form, without the options that are as they are by default.
func (f Fault) String() string {
	text := f.Name
	separator := ":"
	for _, o := range f.Kind().Options() {
		if value := o.get(f); value != o.Default || o.Name == "at" {
			text += separator + o.Name + "=" + value
			separator = ","
		}
	}
	return text
}

// MarshalText writes the text form.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the text form, and names everything that is wrong with it.
func (f *Fault) UnmarshalText(text []byte) error {
	name, settings, _ := strings.Cut(string(text), ":")
	name = strings.TrimSpace(name)
	parsed := Fault{Name: name}
	kind := parsed.Kind()
	if kind.Name == "" {
		var names []string
		for _, k := range FaultKinds() {
			names = append(names, k.Name)
		}
		return fmt.Errorf("unknown fault %q%s (there are: %s)", name, nearest.Question("%q", name, names), strings.Join(names, ", "))
	}
	options := kind.Options()
	for _, o := range options {
		if err := o.set(&parsed, o.Default); err != nil {
			return fmt.Errorf("the default of %s: %w", o.Name, err)
		}
	}
	var wrong []error
	given := map[string]bool{}
	for setting := range strings.SplitSeq(settings, ",") {
		if settings == "" {
			break
		}
		key, value, _ := strings.Cut(setting, "=")
		key = strings.TrimSpace(key)
		at := slices.IndexFunc(options, func(o FaultOption) bool { return o.Name == key })
		switch {
		case at < 0:
			var names []string
			for _, o := range options {
				names = append(names, o.Name)
			}
			wrong = append(wrong, fmt.Errorf("%s: no option %q%s (there are: %s)", name, key, nearest.Question("%q", key, names), strings.Join(names, ", ")))
		case given[key]:
			wrong = append(wrong, fmt.Errorf("%s: %s is there twice", name, key))
		default:
			if err := options[at].set(&parsed, strings.TrimSpace(value)); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %s: %w", name, key, err))
			}
		}
		given[key] = true
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	*f = parsed
	return nil
}

// Lasts is how long a fault takes under a workload, what precedes it included: 0 if it
// is over at once.
func (s Spec) Lasts(f Fault) time.Duration {
	f = s.resolved(f)
	return time.Duration(f.For + f.Lag)
}

// resolved fills in what a fault leaves to its workload.
func (s Spec) resolved(f Fault) Fault {
	if f.Name == HolderPause && f.For == 0 {
		f.For = 2 * s.TTL
	}
	if f.Name == Failover && f.Lag == 0 {
		f.Lag = s.TTL
	}
	return f
}

// faultsWrong says what is wrong with the faults within this workload.
func (s Spec) faultsWrong() []error {
	var wrong []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fmt.Errorf(format, args...))
		}
	}
	for _, f := range s.Faults {
		name := "--fault " + f.Name
		kind := f.Kind()
		if check(kind.Name != "", "%s: there is no such fault", name); kind.Name == "" {
			continue
		}
		lasts := s.Lasts(f)
		check(f.At >= 0, "%s: at must not be negative, not %v", name, f.At)
		check(f.For >= 0, "%s: for must not be negative, not %v", name, f.For)
		check(f.Lag >= 0, "%s: lag must not be negative, not %v", name, f.Lag)
		check(f.Every == 0 || f.Every >= leastEvery, "%s: every must be at least %v, not %v", name, leastEvery, f.Every)
		check(f.Every == 0 || time.Duration(f.Every) > lasts, "%s: it is to come every %v but lasts %v", name, f.Every, lasts)
		why := ""
		if s.resolved(f) != f {
			why = fmt.Sprintf("; how long it takes follows from --ttl %v unless it is said", s.TTL)
		}
		check(s.Iterations > 0 || time.Duration(f.At)+lasts < time.Duration(s.Duration),
			"%s: it would be over %v after the window opens, which is %v long (--duration)%s", name, time.Duration(f.At)+lasts, s.Duration, why)
		check(f.Instances <= s.Instances, "%s: it cannot hit %d of %d instances", name, f.Instances, s.Instances)
		for _, o := range kind.Options() {
			for _, least := range []struct {
				name string
				n, m int
			}{{"n", f.N, 1}, {"command", f.Command, 1}, {"node", f.Node, 0}, {"instances", f.Instances, 0}, {"rate", f.Rate, 1}} {
				check(o.Name != least.name || least.n >= least.m, "%s: %s must be at least %d, not %d", name, least.name, least.m, least.n)
			}
		}
		check(f.Name != WaiterCrash || f.N <= maxWaiters, "%s: n must be at most %d, not %d", name, maxWaiters, f.N)
		check(f.Jitter <= f.Delay, "%s: jitter %v is more than the delay of %v", name, f.Jitter, f.Delay)
		check(f.Delay >= 0 && f.Delay%Duration(time.Millisecond) == 0 && f.Jitter >= 0 && f.Jitter%Duration(time.Millisecond) == 0,
			"%s: delay and jitter are whole milliseconds, not %v and %v", name, f.Delay, f.Jitter)
	}
	check(len(s.Faults) == 0 || s.Gather == 0, "--fault does not go with --gather, where everybody waits for everybody")
	return wrong
}

// leastEvery is between two strikes of a fault: each is reported.
const leastEvery = Duration(10 * time.Millisecond)

// maxWaiters die at a time.
const maxWaiters = 1000
