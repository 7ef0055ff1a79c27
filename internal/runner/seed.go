package runner

import (
	"math/rand/v2"
	"slices"
)

// largestDrawnSeed keeps what is drawn short enough to be typed again.
const largestDrawnSeed = 1_000_000_000

// seeded is the plan with a seed: one that is drawn where none was given, the same
// for all points of a sweep. With a fixed one every session would run the strategies
// in the same order.
func (p Plan) seeded() Plan {
	if p.points()[0].Workload.Seed != 0 {
		return p
	}
	seed := 1 + rand.Int64N(largestDrawnSeed)
	p.Workload.Seed = seed
	p.Sweep = slices.Clone(p.Sweep) // the caller's stays as it is
	for i := range p.Sweep {
		p.Sweep[i].Workload.Seed = seed
	}
	return p
}
