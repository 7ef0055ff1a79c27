package selfcheck

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/aclements/go-moremath/stats"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// twice runs one strategy under two names in interleaved rounds, like any two strategies in a comparison, and
// tests that they are equivalent. A difference here would also appear in comparisons of equal locks.
func (s *session) twice(ctx context.Context, c *Check) error {
	v, err := contender()
	if err != nil {
		return err
	}
	w := workload(20, 5, s.Effort.Round)
	w.Warmup = workloads.Duration(100 * time.Millisecond)
	w.Hold = workloads.Fixed(time.Millisecond)
	metrics := []struct {
		name   string
		margin float64 // the largest ratio that counts as equal
		of     func(*results.Run) float64
		ratios []float64 // logarithms, by round
	}{
		{name: "acquisitions/s", margin: 1.1, of: func(r *results.Run) float64 { return r.Speed.PerSecond }},
		{name: "commands per acquisition", margin: 1.05, of: func(r *results.Run) float64 {
			if r.Server.Window == nil {
				return math.NaN()
			}
			return value(r.Server.Window.PerAcquisition(r.Server.Window.Calls))
		}},
	}
	shuffle := rand.New(rand.NewPCG(1, uint64(s.Effort.Rounds)))
	for round := range s.Effort.Rounds {
		s.say("aa: %s against itself, round %d of %d", v.Name(), round+1, s.Effort.Rounds)
		var pair [2]*results.Run
		first := shuffle.IntN(2)
		for order := range 2 {
			job := s.job(v, w)
			job.Round, job.Order = round+1, order+1
			if pair[(first+order)%2], err = s.do(ctx, job); err != nil {
				return err
			}
		}
		for i := range metrics {
			m := &metrics[i]
			if ratio := math.Log(m.of(pair[0]) / m.of(pair[1])); !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
				m.ratios = append(m.ratios, ratio)
			}
		}
	}
	for _, m := range metrics {
		if len(m.ratios) < 4 {
			c.unsure("%s: %d rounds have the figure, too few", m.name, len(m.ratios))
			continue
		}
		c.same(m.name, m.ratios, m.margin)
	}
	return nil
}

// same tests with two one-sided t-tests at 5 % whether the mean of log ratios lies within a margin (D. J.
// Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). It passes if the 90 % interval lies within the
// margin, and fails if it lies wholly outside. Otherwise there were too few rounds, or too much noise.
func (c *Check) same(name string, ratios []float64, margin float64) {
	mean, low, high := stats.MeanCI(ratios, 0.90) // of Student's t
	percent := func(log float64) float64 { return (math.Exp(log) - 1) * 100 }
	limit := math.Log(margin)
	c.inform(fmt.Sprintf("%s, %d rounds: A off A", name, len(ratios)), percent(mean), results.Percent)
	farthest := low
	if high > -low {
		farthest = high
	}
	verdict := Inconclusive
	switch {
	case -limit < low && high < limit:
		verdict = Pass
	case low > limit || high < -limit:
		verdict = Fail
	}
	c.judge(verdict, name+": farther end of the 90 % interval", percent(farthest), results.Percent, "within ×%v", margin)
}
