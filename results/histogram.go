package results

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Durations are recorded from 1 ns to 1 h with three significant digits: the
// error of a value read back is below 0.1 %.
const (
	longestRecorded = int64(3_600_000_000_000)
	recordedDigits  = 3
)

// NewHistogram is an empty histogram of nanoseconds as distributions are made of.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longestRecorded, recordedDigits)
}

// Describe makes the percentiles of durations that were seen to their end and of
// those that were not, and keeps both histograms. The longest is known exactly,
// and nil without any. Count, Censored, MeanNS and Overflow are the caller's to
// set where the histograms do not hold one count a duration.
func Describe(ended, censored *hdrhistogram.Histogram, longest *Bound) (Distribution, error) {
	s := estimate(ended, censored, longest)
	d := Distribution{
		Count:    ended.TotalCount(),
		Censored: censored.TotalCount(),
		P50:      s.Quantile(0.50),
		P90:      s.Quantile(0.90),
		P95:      s.Quantile(0.95),
		P99:      s.Quantile(0.99),
		P999:     s.Quantile(0.999),
		Max:      longest,
	}
	var err error
	if d.Histogram, err = encode(ended); err != nil {
		return d, err
	}
	d.CensoredHistogram, err = encode(censored)
	return d, err
}

// encode is "" for an empty histogram.
func encode(h *hdrhistogram.Histogram) (string, error) {
	if h == nil || h.TotalCount() == 0 {
		return "", nil
	}
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encode histogram: %w", err)
	}
	return string(encoded), nil
}

// decode is nil for "".
func decode(encoded string) (*hdrhistogram.Histogram, error) {
	if encoded == "" {
		return nil, nil
	}
	h, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		return nil, fmt.Errorf("decode histogram: %w", err)
	}
	return h, nil
}

// Histograms decodes those of the durations seen to their end and of those that
// were not; either is nil where it is empty.
func (d Distribution) Histograms() (ended, censored *hdrhistogram.Histogram, err error) {
	if ended, err = decode(d.Histogram); err != nil {
		return nil, nil, fmt.Errorf("hdr: %w", err)
	}
	if censored, err = decode(d.CensoredHistogram); err != nil {
		return nil, nil, fmt.Errorf("censored_hdr: %w", err)
	}
	return ended, censored, nil
}

// TurnsHistogram is how many clients had how many turns; nil where it was not
// recorded.
func (f Fairness) TurnsHistogram() (*hdrhistogram.Histogram, error) {
	h, err := decode(f.Turns)
	if err != nil {
		return nil, fmt.Errorf("turns_hdr: %w", err)
	}
	return h, nil
}

// NewTurnsHistogram is an empty histogram of turns: exact up to 2047 of them,
// beyond that within 0.1 %.
func NewTurnsHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, 1<<40, recordedDigits) }

// SetTurns keeps the histogram.
func (f *Fairness) SetTurns(h *hdrhistogram.Histogram) (err error) {
	f.Turns, err = encode(h)
	return err
}

// distributions are a run's, with their names in the document.
func (r *Run) distributions() map[string]*Distribution {
	return map[string]*Distribution{
		"speed.handoff":           &r.Speed.Handoff,
		"speed.hold":              &r.Speed.Hold,
		"speed.release":           &r.Speed.Release,
		"waiting.per_acquisition": &r.Waiting.PerAcquisition,
		"waiting.per_client":      &r.Waiting.PerClient,
		"waiting.service":         &r.Waiting.Service,
	}
}
