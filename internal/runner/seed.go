package runner

import (
	"math/rand/v2"
	"slices"
)

// largestDrawnSeed keeps random seeds short enough to type.
const largestDrawnSeed = 1_000_000_000

// seeded returns the plan with a seed: if none was given, a random one, the same for all points of a
// sweep. With a fixed seed every session would use the same order.
func (p Plan) seeded() Plan {
	if p.points()[0].Workload.Seed != 0 {
		return p
	}
	seed := 1 + rand.Int64N(largestDrawnSeed)
	p.Workload.Seed = seed
	p.Sweep = slices.Clone(p.Sweep) // do not change the caller's slice
	for i := range p.Sweep {
		p.Sweep[i].Workload.Seed = seed
	}
	return p
}
