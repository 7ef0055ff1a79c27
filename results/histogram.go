package results

import (
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"math"
	"math/bits"
	"reflect"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Durations from 1 ns to 1 h are recorded with three significant digits: the error of a
// recorded value is below 0.1 %.
const (
	longestRecorded = int64(3_600_000_000_000)
	recordedDigits  = 3
)

// NewHistogram returns an empty histogram of nanoseconds in the layout of distributions.
func NewHistogram() *hdrhistogram.Histogram {
	return durationsLayout.histogram()
}

// filled yields the upper edge and the count of each bucket that is not empty. It does what
// Histogram.Distribution does, but skips the tens of thousands of empty buckets. The counts
// have the layout of HdrHistogram (hdrhistogram.org): first twice as many buckets of one
// width as the digits need, then half as many of each next width, which is twice the last.
func filled(h *hdrhistogram.Histogram) iter.Seq2[int64, int64] {
	return func(yield func(to, n int64) bool) {
		if h.TotalCount() == 0 {
			return
		}
		s := h.Export()
		unit := bits.Len64(uint64(max(1, s.LowestTrackableValue))) - 1
		half := 1 << (bits.Len64(uint64(2*math.Pow10(int(s.SignificantFigures)))-1) - 1)
		for i, n := range s.Counts {
			if n == 0 {
				continue
			}
			width, place := unit, i
			if doubled := i/half - 1; doubled > 0 {
				width, place = unit+doubled, i-doubled*half
			}
			if !yield(int64(place+1)<<width-1, n) {
				return
			}
		}
	}
}

// Describe computes the percentiles of durations and keeps their histograms. longest is
// exact; nil means that there are no durations. The caller sets Count, Censored, MeanNS and
// Overflow if a histogram's counts are not numbers of durations.
func Describe(o Observations, longest *Bound) Distribution {
	return describe(o, nil, Survival{curve: estimate(o, longest)}, longest)
}

// DescribeBetween is Describe for a set in which some weight belongs to durations that were
// not observed. Without rest the percentiles are too low, with it too high. See
// Waiting.PerClient.
func DescribeBetween(o, rest Observations, longest *Bound) (Distribution, error) {
	s, err := between(o, &rest, longest)
	if err != nil {
		return Distribution{}, err
	}
	return describe(o, &rest, s, longest), nil
}

func describe(o Observations, rest *Observations, s Survival, longest *Bound) Distribution {
	d := Distribution{
		Count:    total(o.Ended),
		Censored: total(o.Censored),
		P50:      s.Quantile(0.50),
		P90:      s.Quantile(0.90),
		P95:      s.Quantile(0.95),
		P99:      s.Quantile(0.99),
		P999:     s.Quantile(0.999),
		Max:      longest,

		Histogram:         encode(o.Ended),
		CensoredHistogram: encode(o.Censored),
		EnteredHistogram:  encode(o.Entered),
	}
	if rest != nil {
		d.Rest = &Rest{Histogram: encode(rest.Ended), CensoredHistogram: encode(rest.Censored)}
	}
	return d
}

// between returns the estimate without the rest, and also with it if there is one.
func between(o Observations, rest *Observations, longest *Bound) (Survival, error) {
	s := Survival{curve: estimate(o, longest)}
	if rest == nil {
		return s, nil
	}
	all := NewObservations()
	for _, part := range []Observations{o, *rest} {
		if err := all.Add(part); err != nil {
			return s, err
		}
	}
	s.high = new(estimate(all, longest))
	return s, nil
}

// encode returns "" for an empty histogram.
func encode(h *hdrhistogram.Histogram) string {
	if h == nil || h.TotalCount() == 0 {
		return ""
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(fmt.Sprintf("encode histogram: %v", err)) // it only writes to memory
	}
	return string(encoded)
}

// The layouts of the histograms that a report has.
var (
	durationsLayout = layout{1, longestRecorded, recordedDigits}
	perClientLayout = layout{1, 1 << 40, recordedDigits}
)

// layout is what a histogram can count, which says how much memory it takes.
type layout struct {
	lowest, highest int64
	digits          int32
}

func (l layout) histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(l.lowest, l.highest, int(l.digits))
}

// check returns an error if an encoded histogram has another layout. It reads no more of it than its head:
// a few bytes can stand for hundreds of megabytes.
func (l layout) check(encoded string) error {
	wire := base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded))
	var head struct {
		Cookie, Length, Offset, Digits int32
		Lowest, Highest                int64
	}
	if _, err := io.CopyN(io.Discard, wire, 8); err != nil { // the cookie and length of what is compressed
		return err
	}
	inflated, err := zlib.NewReader(wire)
	if err != nil {
		return err
	}
	if err := binary.Read(inflated, binary.BigEndian, &head); err != nil {
		return err
	}
	if of := (layout{head.Lowest, head.Highest, head.Digits}); of != l {
		return fmt.Errorf("it counts %d to %d with %d digits, lockbench's %d to %d with %d",
			of.lowest, of.highest, of.digits, l.lowest, l.highest, l.digits)
	}
	return nil
}

// decode decodes a histogram of this layout; it returns nil for "".
func (l layout) decode(encoded string) (*hdrhistogram.Histogram, error) {
	if encoded == "" {
		return nil, nil
	}
	if err := l.check(encoded); err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	return h, nil
}

// PerClientHistogram returns how many clients had how many acquisitions; nil where it was
// not recorded.
func (f Fairness) PerClientHistogram() (*hdrhistogram.Histogram, error) {
	h, err := perClientLayout.decode(f.PerClient)
	if err != nil {
		return nil, fmt.Errorf("turns_hdr: %w", err)
	}
	return h, nil
}

// NewPerClientHistogram returns an empty histogram of acquisitions per client. It is exact
// up to 2047, and within 0.1 % above.
func NewPerClientHistogram() *hdrhistogram.Histogram {
	return perClientLayout.histogram()
}

// SetPerClient keeps the histogram.
func (f *Fairness) SetPerClient(h *hdrhistogram.Histogram) { f.PerClient = encode(h) }

// distributions returns a run's distributions by their path in the document.
func (r *Run) distributions() map[string]*Distribution {
	all := map[string]*Distribution{}
	findDistributions(reflect.ValueOf(r).Elem(), "", all)
	return all
}

func findDistributions(in reflect.Value, path string, all map[string]*Distribution) {
	if in.Kind() == reflect.Pointer {
		in = in.Elem() // the zero Value if the pointer is nil
	}
	if in.Kind() != reflect.Struct {
		return
	}
	if d, ok := in.Addr().Interface().(*Distribution); ok {
		all[path] = d
		return
	}
	for i := range in.NumField() {
		field := in.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.IsExported() && name != "" {
			findDistributions(in.Field(i), strings.TrimPrefix(path+"."+name, "."), all)
		}
	}
}
