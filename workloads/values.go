package workloads

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/untrusted"
)

// Duration is a time.Duration whose text form is time.Duration's notation ("5ms").
type Duration time.Duration

// String returns the duration in time.Duration's notation, such as "5ms".
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the same text as String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses a duration in time.Duration's notation, such as "5ms".
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 500us, 5ms or 2s", text)
	}
	*d = Duration(parsed)
	return nil
}

// Dist is a distribution of durations. Its text form is:
//
//	5ms                 always 5 ms
//	uniform:1ms,5ms     uniform between 1 ms and 5 ms
//	exp:5ms             exponential with a mean of 5 ms
//	lognormal:5ms,0.8   log-normal with a median of 5 ms, and σ = 0.8 of the logarithm
//	file:holds.txt      drawn from the durations in a file, one per line
//
// The zero Dist is always 0.
type Dist struct {
	kind   string
	first  Duration // fixed value, lower bound, mean or median
	second Duration // upper bound of uniform
	sigma  float64
	file   string

	samples []Duration
}

// Fixed returns the Dist whose value is always d.
func Fixed(d time.Duration) Dist { return Dist{first: Duration(d)} }

// String returns the text form (see Dist).
func (d Dist) String() string {
	switch d.kind {
	case "uniform":
		return fmt.Sprintf("uniform:%v,%v", d.first, d.second)
	case "exp":
		return fmt.Sprintf("exp:%v", d.first)
	case "lognormal":
		return fmt.Sprintf("lognormal:%v,%s", d.first, number(d.sigma))
	case "file":
		return "file:" + untrusted.Printable(d.file)
	}
	return d.first.String()
}

// MarshalText returns the same text as String.
func (d Dist) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Equal reports whether two values have the same text form.
func (d Dist) Equal(other Dist) bool { return d.String() == other.String() }

// UnmarshalText parses the text form (see Dist). It does not read the named file, because a report may be read on a
// machine without the file.
func (d *Dist) UnmarshalText(text []byte) error {
	kind, rest, found := strings.Cut(string(text), ":")
	if !found {
		return d.first.UnmarshalText(text)
	}
	parsed := Dist{kind: kind}
	if err := parsed.read(rest); err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	*d = parsed
	return nil
}

// read parses the parameters that follow the kind of a distribution, such as "1ms,5ms".
func (d *Dist) read(rest string) error {
	first, second, two := strings.Cut(rest, ",")
	var err error
	switch d.kind {
	case "exp":
		return d.first.UnmarshalText([]byte(rest))
	case "uniform":
		if !two {
			return fmt.Errorf("uniform takes two durations, such as uniform:1ms,5ms")
		}
		err = errors.Join(d.first.UnmarshalText([]byte(first)), d.second.UnmarshalText([]byte(second)))
		if err == nil && d.second < d.first {
			err = fmt.Errorf("the shorter duration must come first: uniform:%s,%s", second, first)
		}
		return err
	case "lognormal":
		if !two {
			return fmt.Errorf("lognormal takes a median and σ, such as lognormal:5ms,0.8")
		}
		if d.sigma, err = strconv.ParseFloat(second, 64); err != nil || !(d.sigma >= 0 && d.sigma <= 10) {
			return fmt.Errorf("σ must be a number from 0 to 10, not %q", second)
		}
		return d.first.UnmarshalText([]byte(first))
	case "file":
		if d.file = rest; rest == "" {
			return fmt.Errorf("the path is missing: use file:PATH")
		}
		return nil
	}
	return fmt.Errorf("unknown distribution; use 5ms, uniform:1ms,5ms, exp:5ms, lognormal:5ms,0.8 or file:PATH")
}

// pairs joins parameters of a distribution that were separated because the text was split at the comma between them.
func pairs(parts []string) []string {
	var values []string
	for i := 0; i < len(parts); i++ {
		kind, _, _ := strings.Cut(parts[i], ":")
		if (kind == "uniform" || kind == "lognormal") && i+1 < len(parts) && !strings.Contains(parts[i+1], ":") {
			values = append(values, parts[i]+","+parts[i+1])
			i++
			continue
		}
		values = append(values, parts[i])
	}
	return values
}

// File returns the name of the file that Load reads; "" if there is none.
func (d Dist) File() string { return d.file }

// Load reads the file that the distribution names, if any: one duration per line. It skips empty lines and lines that
// begin with #. Draw and Mean need Load to be called first. Its error does not quote the file's content, because the
// name may come from another person's report.
func (d *Dist) Load() error {
	if d.kind != "file" || d.samples != nil {
		return nil
	}
	text, err := untrusted.ReadFile(d.file)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var sample Duration
		if err := sample.UnmarshalText([]byte(line)); err != nil {
			return fmt.Errorf("%s:%d: the line is not a duration such as 5ms", d.file, n)
		}
		if sample < 0 {
			return fmt.Errorf("%s:%d: the duration is negative", d.file, n)
		}
		d.samples = append(d.samples, sample)
	}
	if len(d.samples) == 0 {
		return fmt.Errorf("%s has no durations", d.file)
	}
	return nil
}

// Draw returns a random duration of the distribution; 0 if its file has not been loaded.
func (d Dist) Draw(random *rand.Rand) time.Duration {
	switch d.kind {
	case "uniform":
		return time.Duration(d.first) + time.Duration(random.Int64N(int64(d.second-d.first)+1))
	case "exp":
		return time.Duration(random.ExpFloat64() * float64(d.first))
	case "lognormal":
		return time.Duration(min(float64(d.first)*math.Exp(d.sigma*random.NormFloat64()), math.MaxInt64/2))
	case "file":
		if len(d.samples) == 0 {
			return 0
		}
		return time.Duration(d.samples[random.IntN(len(d.samples))])
	}
	return time.Duration(d.first)
}

// Mean returns the mean of the distribution; 0 if its file has not been loaded.
func (d Dist) Mean() time.Duration {
	switch d.kind {
	case "uniform":
		return time.Duration(d.first+d.second) / 2
	case "lognormal":
		return time.Duration(min(float64(d.first)*math.Exp(d.sigma*d.sigma/2), math.MaxInt64/2))
	case "file":
		var sum float64
		for _, s := range d.samples {
			sum += float64(s)
		}
		return time.Duration(sum / max(1, float64(len(d.samples))))
	}
	return time.Duration(d.first)
}

// IsZero reports whether the value is always 0.
func (d Dist) IsZero() bool { return d.kind == "" && d.first == 0 }

func (d Dist) negative() bool { return d.first < 0 || d.second < 0 }

// KeyDist is the distribution by which clients choose keys. Its text form is:
//
//	uniform          all keys with equal probability
//	zipf:0.99        key k with a weight of 1 ÷ k^0.99 (YCSB's exponent)
//	hotspot:0.8/2    80 % of choices among the first two keys
//
// The zero KeyDist is uniform.
type KeyDist struct {
	kind     string
	exponent float64
	share    float64
	hot      int
}

// String returns the text form (see KeyDist).
func (k KeyDist) String() string {
	switch k.kind {
	case "zipf":
		return "zipf:" + number(k.exponent)
	case "hotspot":
		return fmt.Sprintf("hotspot:%s/%d", number(k.share), k.hot)
	}
	return "uniform"
}

// MarshalText returns the same text as String.
func (k KeyDist) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Equal reports whether two values have the same text form.
func (k KeyDist) Equal(other KeyDist) bool { return k.String() == other.String() }

// UnmarshalText parses the text form (see KeyDist).
func (k *KeyDist) UnmarshalText(text []byte) error {
	kind, rest, _ := strings.Cut(string(text), ":")
	parsed := KeyDist{kind: kind}
	var err error
	switch kind {
	case "uniform":
		parsed.kind = ""
		if rest != "" {
			err = fmt.Errorf("uniform takes no parameter")
		}
	case "zipf":
		if parsed.exponent, err = strconv.ParseFloat(rest, 64); err != nil ||
			!(parsed.exponent > 0 && parsed.exponent <= 10) {
			err = fmt.Errorf("the exponent must be above 0 and at most 10, not %q", rest)
		}
	case "hotspot":
		share, hot, _ := strings.Cut(rest, "/")
		if parsed.share, err = strconv.ParseFloat(share, 64); err != nil || !(parsed.share > 0 && parsed.share <= 1) {
			err = fmt.Errorf("the share must be above 0 and at most 1, not %q", share)
		} else if parsed.hot, err = strconv.Atoi(hot); err != nil || parsed.hot < 1 {
			err = fmt.Errorf("the number of hot keys must be at least 1, not %q", hot)
		}
	default:
		err = fmt.Errorf("the distribution must be uniform, zipf:S or hotspot:SHARE/KEYS")
	}
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	*k = parsed
	return nil
}

// Chooser draws keys. Several goroutines may use the same Chooser, but each needs its own rand.Rand.
type Chooser struct {
	keys       int
	cumulative []float64 // nil for uniform
}

// Over returns a Chooser for the given number of keys.
func (k KeyDist) Over(keys int) Chooser {
	c := Chooser{keys: keys}
	if k.kind == "" {
		return c
	}
	var sum float64
	c.cumulative = make([]float64, keys)
	for i := range c.cumulative {
		sum += k.weight(i, keys)
		c.cumulative[i] = sum
	}
	return c
}

func (k KeyDist) weight(key, keys int) float64 {
	hot := min(k.hot, keys)
	switch {
	case k.kind == "zipf":
		return math.Pow(float64(key+1), -k.exponent)
	case key < hot && hot == keys:
		return 1
	case key < hot:
		return k.share / float64(hot)
	default:
		return (1 - k.share) / float64(keys-hot)
	}
}

// Hottest returns the probability of the key that is chosen most often.
func (k KeyDist) Hottest(keys int) float64 {
	c := k.Over(keys)
	if c.cumulative == nil {
		return 1 / float64(keys)
	}
	most, before := 0.0, 0.0
	for _, sum := range c.cumulative {
		most, before = max(most, sum-before), sum
	}
	return most / before
}

// Choose draws a key and returns its index, from 0.
func (c Chooser) Choose(random *rand.Rand) int {
	switch {
	case c.keys == 1:
		return 0
	case c.cumulative == nil:
		return random.IntN(c.keys)
	}
	at := random.Float64() * c.cumulative[len(c.cumulative)-1]
	return min(sort.SearchFloat64s(c.cumulative, at), c.keys-1)
}

// Rate is a number of arrivals per second. Its text form is "2000/s"; "30/m" and "30/h" are also accepted. 0 means that
// there are no arrivals.
type Rate float64

// String returns the rate per second, such as "2000/s".
func (r Rate) String() string { return number(float64(r)) + "/s" }

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// MarshalText returns the same text as String.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses a rate such as "2000/s" or "30/m". A number without a unit is per second.
func (r *Rate) UnmarshalText(text []byte) error {
	number, unit, _ := strings.Cut(string(text), "/")
	per, known := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour}[unit]
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || !known || !(value >= 0 && value <= 1e9) {
		return fmt.Errorf("%q is not a rate such as 2000/s", text)
	}
	*r = Rate(value / per.Seconds())
	return nil
}

// Stage is a part of the window in which the load changes linearly from the final load of the previous stage to
// Target. Its text form is:
//
//	30s:500      to 500 active clients, in a closed loop
//	30s:2000/s   to 2000 arrivals per second, in an open loop
type Stage struct {
	Duration Duration
	Target   float64 // clients or, if Open, arrivals per second
	Open     bool
}

// String returns the text form (see Stage).
func (s Stage) String() string {
	if s.Open {
		return s.Duration.String() + ":" + Rate(s.Target).String()
	}
	return s.Duration.String() + ":" + number(s.Target)
}

// MarshalText returns the same text as String.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the text form (see Stage).
func (s *Stage) UnmarshalText(text []byte) error {
	length, target, found := strings.Cut(string(text), ":")
	var parsed Stage
	if err := parsed.Duration.UnmarshalText([]byte(length)); err != nil || !found {
		return fmt.Errorf("%q is not a stage such as 30s:500, or 30s:2000/s for an open loop", text)
	}
	if parsed.Duration <= 0 {
		return fmt.Errorf("%q: the length of a stage must be positive", text)
	}
	if strings.Contains(target, "/") {
		var rate Rate
		if err := rate.UnmarshalText([]byte(target)); err != nil {
			return err
		}
		*s = Stage{parsed.Duration, float64(rate), true}
		return nil
	}
	clients, err := parse(target, reflect.TypeFor[int]())
	if err != nil {
		return err
	}
	if clients.Int() < 0 {
		return fmt.Errorf("%q: the number of clients must not be negative", text)
	}
	*s = Stage{Duration: parsed.Duration, Target: float64(clients.Int())}
	return nil
}

// Stages is a sequence of stages that begins when the window opens. The load of the first stage is constant, and
// applies to the warm-up too. After the last stage, its final load continues.
type Stages []Stage

// Length returns the total length of all stages.
func (s Stages) Length() Duration {
	var sum Duration
	for _, stage := range s {
		sum += stage.Duration
	}
	return sum
}

// Most returns the largest load of all stages.
func (s Stages) Most() float64 {
	var most float64
	for _, stage := range s {
		most = max(most, stage.Target)
	}
	return most
}
