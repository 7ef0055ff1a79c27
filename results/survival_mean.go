package results

import "math"

// Mean is the area under the curve, which is the mean of the durations in nanoseconds (J. P.
// Klein, M. L. Moeschberger, Survival Analysis, 2nd edition 2003, 4.5). If the longest was
// not seen to its end, it is the area up to there, a lower bound. Two estimates must agree
// as for a quantile, otherwise it is a lower bound. nil without observations.
func (s Survival) Mean() *Figure {
	low := s.curve.mean()
	if s.high == nil || low == nil {
		return low
	}
	high := s.high.mean()
	if low.AtLeast || high.AtLeast || high.Value > agreement*low.Value {
		return &Figure{Value: low.Value, AtLeast: true}
	}
	return &Figure{Value: math.Sqrt(low.Value * high.Value)}
}

func (c curve) mean() *Figure {
	if c.limit == 0 && len(c.steps) == 0 {
		return nil
	}
	mean, left, from := 0.0, 1.0, int64(0)
	for _, step := range c.steps {
		mean += left * float64(step.ns-from)
		left, from = step.left, step.ns
	}
	const rounding = 1e-9 // rounding errors of the products in the curve
	mean += left * float64(c.limit-from)
	return &Figure{Value: mean, AtLeast: left > rounding}
}
