package advise

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// TestRelationsFollowTheInterval holds what is said of two locks against the interval that
// stands beside it, for figures drawn at random.
func TestRelationsFollowTheInterval(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(21, 6))
	seen := map[string]int{}
	for range 4000 {
		rounds := 1 + random.IntN(9)
		apart, noise := 0.5+random.Float64(), random.Float64()*0.6
		at := func(base float64) func(*results.Run) {
			return func(r *results.Run) {
				v := base * (1 - noise/2 + noise*random.Float64())
				r.Speed.ServedPerSecond = v
				if random.IntN(20) == 0 {
					r.Invalid = []string{"books"}
				}
			}
		}
		report := reported(rounds, "", lock{name: "spin", served: 100, change: at(100 * apart)}, lock{name: "pubsub", served: 100, change: at(100)})
		all := contenders(one(report), variants("spin,pubsub"))
		c := criterion{name: "served_per_s", what: "clients served a second", rounds: rounds}
		s, ok := c.sentence(all[0], all)
		if !ok {
			continue
		}
		if len(s.Evidence) < 2 || s.Evidence[1].Ratio == nil {
			if !strings.Contains(s.Text, "not to be compared with pubsub") {
				t.Fatalf("no ratio is known: %s", s.Text)
			}
			continue
		}
		r := s.Evidence[1].Ratio
		want := "not told apart from"
		switch enough := r.Interval || r.Rounds >= rounds; {
		case enough && r.Low > 1 && r.Median >= matters:
			want = "; better than"
		case enough && r.Low > 1:
			want = "slightly better than"
		case enough && r.High < 1 && r.Median <= 1/matters:
			want = "; worse than"
		case enough && r.High < 1:
			want = "slightly worse than"
		}
		seen[want]++
		if !strings.Contains(s.Text, want+" pubsub") || strings.Contains(s.Text, "equal") {
			t.Fatalf("beside %+v of %d rounds it says %s, want %q", r, rounds, s.Text, want)
		}
	}
	for _, title := range []string{"not told apart from", "; better than", "slightly better than", "; worse than", "slightly worse than"} {
		if seen[title] < 10 {
			t.Errorf("%q came up %d times: the test looks at nothing", title, seen[title])
		}
	}
}
