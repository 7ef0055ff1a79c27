package results

import (
	"cmp"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts values, mostly in nanoseconds. It contains only the bins that are not empty, in ascending order. In
// JSON it is a string: HdrHistogram's V2 compressed encoding in base64.
type Histogram []Bin

// Bin counts the values in one range. To is the largest value of the range. Every other value of the range differs from
// To by less than 0.1 %. Each value up to 2047 has its own bin.
type Bin struct{ To, Count int64 }

// Every histogram of a report has this layout: 1 ns to 1 h with three significant digits.
const (
	longestRecorded = int64(3_600_000_000_000)
	recordedDigits  = 3
)

// NewHistogram returns an empty histogram in which values can be recorded. Counted converts it to a Histogram.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longestRecorded, recordedDigits)
}

// Counted returns the values recorded in h, which may have any number of significant digits.
func Counted(h *hdrhistogram.Histogram) Histogram {
	if h.TotalCount() == 0 {
		return nil
	}
	return Exported(h.Export())
}

// Exported is like Counted, but takes a snapshot. So a caller needs to lock the histogram only while it makes the
// snapshot. It omits the empty bins, of which there are tens of thousands. The counts in a snapshot have the layout of
// HdrHistogram (hdrhistogram.org): first 2n bins of width 1, where n depends on the number of digits, then n bins of
// width 2, n of width 4, and so on.
func Exported(s *hdrhistogram.Snapshot) Histogram {
	half := 1 << (bits.Len64(uint64(2*math.Pow10(int(s.SignificantFigures)))-1) - 1)
	var bins Histogram
	for i, n := range s.Counts {
		if n == 0 {
			continue
		}
		width, place := 0, i
		if doubled := i/half - 1; doubled > 0 {
			width, place = doubled, i-doubled*half
		}
		bins = append(bins, Bin{int64(place+1)<<width - 1, n})
	}
	return bins
}

// from returns the smallest value of the bin's range.
func (b Bin) from() int64 {
	const exact = 11 // bits of the values that have a bin of their own
	return b.To >> max(0, bits.Len64(uint64(b.To))-exact) << max(0, bits.Len64(uint64(b.To))-exact)
}

// middle returns the middle of the bin's range, which Mean and StdDev use for every value of the bin.
func (b Bin) middle() float64 { return float64(b.from() + (b.To-b.from()+1)/2) }

// TotalCount returns the number of recorded values.
func (h Histogram) TotalCount() int64 {
	var n int64
	for _, b := range h {
		n += b.Count
	}
	return n
}

// Mean returns the mean of the values; 0 if there are none.
func (h Histogram) Mean() float64 {
	var sum float64
	for _, b := range h {
		sum += b.middle() * float64(b.Count)
	}
	return sum / float64(max(1, h.TotalCount()))
}

// StdDev returns the standard deviation of the values; 0 if there are none.
func (h Histogram) StdDev() float64 {
	var squares float64
	mean := h.Mean()
	for _, b := range h {
		squares += math.Pow(b.middle()-mean, 2) * float64(b.Count)
	}
	return math.Sqrt(squares / float64(max(1, h.TotalCount())))
}

// Median returns the upper edge of the bin that contains the median; nil if there are no values.
func (h Histogram) Median() *int64 {
	var upTo int64
	all := h.TotalCount()
	for _, b := range h {
		if upTo += b.Count; 2*upTo >= all {
			return &b.To
		}
	}
	return nil
}

// Plus returns a new histogram with the values of both; it changes neither h nor other.
func (h Histogram) Plus(other Histogram) Histogram {
	if len(h)+len(other) == 0 {
		return nil
	}
	sum := make(Histogram, 0, max(len(h), len(other)))
	for len(h) > 0 && len(other) > 0 {
		switch a, b := h[0], other[0]; cmp.Compare(a.To, b.To) {
		case -1:
			sum, h = append(sum, a), h[1:]
		case 1:
			sum, other = append(sum, b), other[1:]
		default:
			sum, h, other = append(sum, Bin{a.To, a.Count + b.Count}), h[1:], other[1:]
		}
	}
	return append(append(sum, h...), other...)
}

// MarshalText returns HdrHistogram's V2 compressed encoding in base64. It fails if a value is above longestRecorded.
func (h Histogram) MarshalText() ([]byte, error) {
	dense := NewHistogram()
	for _, b := range h {
		if err := dense.RecordValues(b.To, b.Count); err != nil {
			return nil, fmt.Errorf("encode histogram: %w", err)
		}
	}
	return dense.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
}

// UnmarshalText decodes what MarshalText returned. It rejects damaged data, and any layout other than that of the
// histograms in a report.
func (h *Histogram) UnmarshalText(encoded []byte) error {
	*h = nil
	if len(encoded) == 0 {
		return nil
	}
	if err := checkLayout(string(encoded)); err != nil {
		return fmt.Errorf("damaged histogram: %w", err)
	}
	dense, err := hdrhistogram.Decode(encoded)
	if err != nil {
		return fmt.Errorf("damaged histogram: %w", err)
	}
	*h = Counted(dense)
	return nil
}

// checkLayout returns an error unless the encoded histogram has the layout of a report's histograms. It decodes only
// the header, because a few bytes can expand to hundreds of megabytes.
func checkLayout(encoded string) error {
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
	if head.Lowest != 1 || head.Highest != longestRecorded || head.Digits != recordedDigits {
		return fmt.Errorf("its range is %d to %d with %d digits, but lockbench writes only 1 to %d with %d digits",
			head.Lowest, head.Highest, head.Digits, longestRecorded, recordedDigits)
	}
	return nil
}
