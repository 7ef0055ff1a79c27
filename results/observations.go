package results

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Observations are durations as histograms of nanoseconds, any of which may be
// nil.
type Observations struct {
	Ended    *hdrhistogram.Histogram // seen to their end
	Censored *hdrhistogram.Histogram // what was seen of those that were not
	// Entered is the age that a duration had when it could first be seen ending; of
	// those only that had one. Each of them is among Ended or Censored too.
	Entered *hdrhistogram.Histogram
}

// NewObservations is three empty histograms.
func NewObservations() Observations {
	return Observations{Ended: NewHistogram(), Censored: NewHistogram(), Entered: NewHistogram()}
}

// Count is the number of durations in all.
func (o Observations) Count() int64 { return total(o.Ended) + total(o.Censored) }

func total(h *hdrhistogram.Histogram) int64 {
	if h == nil {
		return 0
	}
	return h.TotalCount()
}

// Add adds others to histograms that are not nil. It is an error if they hold
// more than an hour.
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

// Observations decodes what the distribution is made of; a histogram that is not
// in the report is nil.
func (d Distribution) Observations() (Observations, error) {
	var o Observations
	for _, h := range []struct {
		name, encoded string
		into          **hdrhistogram.Histogram
	}{
		{"hdr", d.Histogram, &o.Ended}, {"censored_hdr", d.CensoredHistogram, &o.Censored}, {"entered_hdr", d.EnteredHistogram, &o.Entered},
	} {
		var err error
		if *h.into, err = decode(h.encoded); err != nil {
			return o, fmt.Errorf("%s: %w", h.name, err)
		}
	}
	return o, nil
}

// rest decodes the Rest; nothing without one.
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
