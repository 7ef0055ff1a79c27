package results

import "fmt"

// Pool merges distributions into one. Histograms add up without loss, so its percentiles are
// those of a single recording. It returns an error if durations were counted but are in no
// histogram.
func Pool(parts []Distribution) (Distribution, error) {
	o, rest, err := PoolObservations(parts)
	if err != nil {
		return Distribution{}, err
	}
	longest := longestOf(parts)
	s, err := between(o, rest, longest)
	if err != nil {
		return Distribution{}, err
	}
	pooled := describe(o, rest, s, longest)
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
		pooled.MeanNS = new(mean / float64(pooled.Count))
	}
	return pooled, nil
}

// PoolSurvival returns the Survival of the pooled distributions.
func PoolSurvival(parts []Distribution) (Survival, error) {
	o, rest, err := PoolObservations(parts)
	if err != nil {
		return Survival{}, err
	}
	return between(o, rest, longestOf(parts))
}

// PoolObservations adds up the histograms of the parts; rest is nil if no part has one.
func PoolObservations(parts []Distribution) (o Observations, rest *Observations, err error) {
	o = NewObservations()
	for i, part := range parts {
		at := func(err error) error {
			if len(parts) == 1 {
				return err
			}
			return fmt.Errorf("distribution %d: %w", i+1, err)
		}
		observed, err := part.Observations()
		if err == nil && observed.Count() == 0 && part.Rest == nil && part.Count+part.Censored > 0 {
			err = fmt.Errorf("it has no histogram of its %d durations", part.Count+part.Censored)
		}
		if err == nil {
			err = o.Add(observed)
		}
		if err != nil {
			return o, nil, at(err)
		}
		if part.Rest == nil {
			continue
		}
		if rest == nil {
			rest = new(NewObservations())
		}
		unobserved, err := part.rest()
		if err == nil {
			err = rest.Add(unobserved)
		}
		if err != nil {
			return o, nil, at(err)
		}
	}
	return o, rest, nil
}

func longestOf(parts []Distribution) *Bound {
	var all []*Bound
	for _, part := range parts {
		all = append(all, part.Max)
	}
	return Longest(all...)
}
