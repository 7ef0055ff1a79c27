package workloads

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
)

// KeyDist is how the clients choose among the keys. It reads and writes itself
// as text:
//
//	uniform          every key alike
//	zipf:0.99        key k with a weight of 1 ÷ k^0.99 (YCSB's exponent)
//	hotspot:0.8/2    four in five choices among the first two keys
//
// The zero KeyDist is uniform.
type KeyDist struct {
	kind     string
	exponent float64
	share    float64
	hot      int
}

// String is the text form.
func (k KeyDist) String() string {
	switch k.kind {
	case "zipf":
		return "zipf:" + number(k.exponent)
	case "hotspot":
		return fmt.Sprintf("hotspot:%s/%d", number(k.share), k.hot)
	}
	return "uniform"
}

// MarshalText writes the text form.
func (k KeyDist) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Equal says whether two are written alike.
func (k KeyDist) Equal(other KeyDist) bool { return k.String() == other.String() }

// UnmarshalText reads the text form.
func (k *KeyDist) UnmarshalText(text []byte) error {
	kind, rest, _ := strings.Cut(string(text), ":")
	parsed := KeyDist{kind: kind}
	var err error
	switch kind {
	case "uniform":
		parsed.kind = ""
		if rest != "" {
			err = fmt.Errorf("uniform takes nothing")
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
		err = fmt.Errorf("there are uniform, zipf:S and hotspot:SHARE/KEYS")
	}
	if err != nil {
		return fmt.Errorf("%q: %w", text, err)
	}
	*k = parsed
	return nil
}

// Chooser draws keys. Goroutines may share it, but not the source of randomness.
type Chooser struct {
	keys       int
	cumulative []float64 // nil for uniform
}

// Over prepares the choice among this number of keys.
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

// Hottest is the share of the choices that goes to the key most chosen.
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

// Choose returns the next key, from 0.
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
