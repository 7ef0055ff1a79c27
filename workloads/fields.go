package workloads

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Field is an option of a workload: a flag of the command and a line of a
// workload file, by the same name and with the same text.
type Field struct {
	Name    string
	Short   string // the flag's letter, if it has one
	Kind    string // what is to be written, for help
	Help    string
	Default string // as help shows it; "" where Help says it
	Sweep   bool   // several values, with commas in between, are measured one by one
	List    bool   // several values belong together
	Plural  string // a list's other name in a workload file
	Switch  bool   // given without a value it is "true"

	set func(*Spec, string) error
}

// Fields are all options, in the order in which help shows them.
func Fields() []Field {
	fields := []Field{
		sweep("clients", "c", "n", "clients in all", whole(func(s *Spec) *int { return &s.Clients })),
		plain("duration", "d", "duration", "how long to measure each run", text(func(s *Spec) *Duration { return &s.Duration })),
		plain("iterations", "n", "n", "end a run after that many acquisitions in all instead", whole(func(s *Spec) *int64 { return &s.Iterations })),
		plain("warmup", "w", "duration", "how long to warm up before measuring", text(func(s *Spec) *Duration { return &s.Warmup })),
		plain("seed", "", "n", "seed of all random choices, also of the order of the runs (default drawn and recorded)", whole(func(s *Spec) *int64 { return &s.Seed })),
		sweep("instances", "", "n", "application instances the clients spread over, each with its own connections (default 10, or fewer for fewer clients)",
			whole(func(s *Spec) *int { return &s.Instances })),
		sweep("keys", "", "n", "locks the clients choose among", whole(func(s *Spec) *int { return &s.Keys })),
		sweep("key-dist", "", "dist", "how they choose: uniform, zipf:0.99, or hotspot:0.8/2 for four in five among the first two",
			text(func(s *Spec) *KeyDist { return &s.KeyDist })),
		sweep("hold", "", "dist", "how long to hold a lock: 5ms, uniform:1ms,5ms, exp:5ms (mean), lognormal:5ms,0.8 (median, sigma) or file:PATH",
			text(func(s *Spec) *Dist { return &s.Hold })),
		sweep("think", "", "dist", "pause between a release and the next acquire, likewise", text(func(s *Spec) *Dist { return &s.Think })),
		sweep("rate", "r", "n/s", "open loop: that many arrivals a second in all, whatever becomes of the earlier ones; --clients bounds those in flight (default closed loop)",
			text(func(s *Spec) *Rate { return &s.Rate })),
		plain("arrivals", "", "kind", "of an open loop: "+either(ArrivalKinds()), word(func(s *Spec) *Arrivals { return &s.Arrivals })),
		{Name: "stage", Kind: "time:load", Help: "go to that many clients (30s:500) or arrivals (30s:2000/s) in that time; repeatable; the stages are the window", List: true, set: addStage},
		sweep("burst", "", "duration", "one client holds the lock for that long while all others wait, then releases it; again and again",
			text(func(s *Spec) *Duration { return &s.Burst })),
		sweep("ttl", "", "duration", "how long a lock stays taken when its holder dies", text(func(s *Spec) *Duration { return &s.TTL })),
		sweep("timeout", "", "duration", "longest wait for a lock; 0 is a try-lock (default unlimited)", setTimeout),
		plain("work", "", "kind", "what a holder does while it holds: none (it sleeps), spin (it computes), or counter, which reads a counter, holds, and writes it back one higher",
			word(func(s *Spec) *Work { return &s.Work })),
		plain("fence", "", "kind", "what the counter does with fencing tokens, where there are some: all (it refuses stale ones), writes (it looks at writes only) or off",
			word(func(s *Spec) *Fence { return &s.Fence })),
		plain("counter", "", "place", "where the counter is: with-locks, in the store of the locks, or apart, in a Redis of its own that no fault hits",
			setCounter),
		{Name: "coalesce", Kind: "bool", Help: "clients of an instance that want the same key share one acquisition (singleflight)", Switch: true,
			set: flag(func(s *Spec) *bool { return &s.Coalesce })},
		{Name: "fault", Plural: "faults", Kind: "name:options", Help: "something that is to go wrong: holder-pause:at=2s,for=3s, waiter-crash:n=5,every=3s; " +
			"lockbench list faults tells what there is; repeatable", List: true, set: addFault},
		sweep("pool", "", "n", "connections of an instance (default its clients, at most 64)", whole(func(s *Spec) *int { return &s.Pool })),
	}
	defaults := Default().texts()
	for i, f := range fields {
		fields[i].Default = defaults[f.Name]
	}
	return fields
}

// texts returns the defaults that help shows. Other defaults depend on something, or mean
// that there is none.
func (s Spec) texts() map[string]string {
	return map[string]string{
		"clients": strconv.Itoa(s.Clients), "keys": strconv.Itoa(s.Keys), "key-dist": s.KeyDist.String(),
		"duration": s.Duration.String(), "warmup": s.Warmup.String(),
		"hold": s.Hold.String(), "think": s.Think.String(), "arrivals": string(s.Arrivals),
		"ttl": s.TTL.String(), "work": string(s.Work), "fence": string(s.Fence), "counter": cmp.Or(string(s.Counter), withLocks),
	}
}

// Values splits a text at its commas if the field may have several values, and faults at
// semicolons. It does not split at a comma within a distribution.
func (f Field) Values(text string) []string {
	if f.Plural != "" {
		return strings.Split(text, ";")
	}
	if !f.Sweep && !f.List || !strings.Contains(text, ",") {
		return []string{text}
	}
	var scratch Spec
	if f.set(&scratch, text) == nil { // such as uniform:1ms,5ms
		return []string{text}
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	if f.Kind == "dist" {
		return pairs(parts)
	}
	return parts
}

// Join puts values together as Values takes them apart.
func (f Field) Join(values []string) string {
	if f.Plural != "" {
		return strings.Join(values, ";")
	}
	return strings.Join(values, ",")
}

// Check says what is wrong with a value by itself.
func (f Field) Check(value string) error {
	var scratch Spec
	return f.set(&scratch, value)
}

func plain(name, short, kind, help string, set func(*Spec, string) error) Field {
	return Field{Name: name, Short: short, Kind: kind, Help: help, set: set}
}

func sweep(name, short, kind, help string, set func(*Spec, string) error) Field {
	return Field{Name: name, Short: short, Kind: kind, Help: help, Sweep: true, set: set}
}

func whole[N int | int64](at func(*Spec) *N) func(*Spec, string) error {
	return func(s *Spec, text string) error { return ParseWhole(text, at(s)) }
}

// ParseWhole reads a whole number. The target keeps its value after an error.
func ParseWhole[N int | int64](text string, target *N) error {
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && int64(N(n)) != n:
		return fmt.Errorf("%s is out of range", text)
	case err != nil:
		return fmt.Errorf("%q is not a whole number", text)
	}
	*target = N(n)
	return nil
}

func text[T encoding.TextUnmarshaler](at func(*Spec) T) func(*Spec, string) error {
	return func(s *Spec, text string) error { return at(s).UnmarshalText([]byte(text)) }
}

// word sets a name; Validate knows which ones there are.
func word[W ~string](at func(*Spec) *W) func(*Spec, string) error {
	return func(s *Spec, text string) error { *at(s) = W(text); return nil }
}

// either lists words to choose among, for a sentence.
func either[W ~string](words []W) string {
	var all []string
	for _, word := range words {
		all = append(all, string(word))
	}
	return strings.Join(all, " or ")
}

func flag(at func(*Spec) *bool) func(*Spec, string) error {
	return func(s *Spec, text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*at(s) = on
		return nil
	}
}

func setTimeout(s *Spec, text string) error {
	var d Duration
	if err := d.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	s.Timeout = &d
	return nil
}

// setCounter leaves the default empty, as in reports that are older than the choice.
func setCounter(s *Spec, text string) error {
	switch text {
	case withLocks:
		s.Counter = CounterWithLocks
	case string(CounterApart):
		s.Counter = CounterApart
	default:
		return fmt.Errorf("%q is not with-locks or apart", text)
	}
	return nil
}

// withLocks is CounterWithLocks as people write it.
const withLocks = "with-locks"

func addStage(s *Spec, text string) error {
	var stage Stage
	if err := stage.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	s.Stages = append(s.Stages, stage)
	return nil
}

func addFault(s *Spec, text string) error {
	var fault Fault
	if err := fault.UnmarshalText([]byte(text)); err != nil {
		return err
	}
	s.Faults = append(s.Faults, fault)
	return nil
}
