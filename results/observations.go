package results

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Observations holds durations as histograms of nanoseconds. Each histogram may be nil.
type Observations struct {
	Ended    *hdrhistogram.Histogram // seen to their end
	Censored *hdrhistogram.Histogram // the part that was seen of the others
	// Entered holds the ages that durations had when their observation began, if that was not
	// 0. Each of these durations is also in Ended or Censored.
	Entered *hdrhistogram.Histogram
}

// NewObservations returns three empty histograms.
func NewObservations() Observations {
	return Observations{Ended: NewHistogram(), Censored: NewHistogram(), Entered: NewHistogram()}
}

// Count returns the number of all durations.
func (o Observations) Count() int64 { return total(o.Ended) + total(o.Censored) }

func total(h *hdrhistogram.Histogram) int64 {
	if h == nil {
		return 0
	}
	return h.TotalCount()
}

// Add adds other's durations; the receiver's histograms must not be nil. Durations above an
// hour are an error.
func (o Observations) Add(other Observations) error {
	for _, pair := range [][2]*hdrhistogram.Histogram{{o.Ended, other.Ended}, {o.Censored, other.Censored}, {o.Entered, other.Entered}} {
		if pair[1] == nil {
			continue
		}
		for ns, n := range filled(pair[1]) {
			if err := pair[0].RecordValues(ns, n); err != nil {
				return fmt.Errorf("%d durations of %d ns do not fit a histogram of up to an hour", n, ns)
			}
		}
	}
	return nil
}

// Observations decodes the histograms of the distribution; one that is not in the report is
// nil.
func (d Distribution) Observations() (Observations, error) {
	var o Observations
	for _, h := range []struct {
		name, encoded string
		into          **hdrhistogram.Histogram
	}{
		{"hdr", d.Histogram, &o.Ended}, {"censored_hdr", d.CensoredHistogram, &o.Censored}, {"entered_hdr", d.EnteredHistogram, &o.Entered},
	} {
		var err error
		if *h.into, err = durationsLayout.decode(h.encoded); err != nil {
			return o, fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return o, nil
}

// rest decodes Rest; without one it returns no histograms.
func (d Distribution) rest() (Observations, error) {
	if d.Rest == nil {
		return Observations{}, nil
	}
	o, err := Distribution{Histogram: d.Rest.Histogram, CensoredHistogram: d.Rest.CensoredHistogram}.Observations()
	if err != nil {
		return o, fmt.Errorf("rest: %w", err)
	}
	return o, nil
}
