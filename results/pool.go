package results

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Pool is one distribution of all these durations. Histograms add up without a
// loss, so its percentiles are those of a single recording. It is an error when
// durations were counted and not kept in a histogram.
func Pool(parts []Distribution) (Distribution, error) {
	ended, censored, err := merged(parts)
	if err != nil {
		return Distribution{}, err
	}
	pooled, err := Describe(ended, censored, longestOf(parts))
	if err != nil {
		return Distribution{}, err
	}
	pooled.Count, pooled.Censored = 0, 0
	mean := 0.0
	for _, part := range parts {
		pooled.Count += part.Count
		pooled.Censored += part.Censored
		pooled.Overflow += part.Overflow
		if part.MeanNS != nil {
			mean += *part.MeanNS * float64(part.Count)
		}
	}
	if pooled.Count > 0 && mean > 0 {
		mean /= float64(pooled.Count)
		pooled.MeanNS = &mean
	}
	return pooled, nil
}

// PoolSurvival is the Survival of Pool.
func PoolSurvival(parts []Distribution) (Survival, error) {
	if len(parts) == 1 {
		return parts[0].Survival()
	}
	ended, censored, err := merged(parts)
	if err != nil {
		return Survival{}, err
	}
	return estimate(ended, censored, longestOf(parts)), nil
}

func merged(parts []Distribution) (ended, censored *hdrhistogram.Histogram, err error) {
	ended, censored = NewHistogram(), NewHistogram()
	for i, part := range parts {
		e, c, err := part.Histograms()
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("distribution %d: %w", i+1, err)
		case e == nil && c == nil && part.Count+part.Censored > 0:
			return nil, nil, fmt.Errorf("distribution %d: it has no histogram of its %d durations", i+1, part.Count+part.Censored)
		}
		dropped := int64(0)
		if e != nil {
			dropped += ended.Merge(e)
		}
		if c != nil {
			dropped += censored.Merge(c)
		}
		if dropped > 0 { // they are all of one range
			return nil, nil, fmt.Errorf("distribution %d: %d of its durations are beyond what a histogram can hold", i+1, dropped)
		}
	}
	return ended, censored, nil
}

func longestOf(parts []Distribution) *Bound {
	var all []*Bound
	for _, part := range parts {
		all = append(all, part.Max)
	}
	return Longest(all...)
}
