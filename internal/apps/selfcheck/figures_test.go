package selfcheck

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lockbench/lockbench/internal/engine"
)

// queueOf is a queue of one server as it must be, in ns.
func queueOf(customers int, handoff int64) []engine.Acquisition {
	random := rand.New(rand.NewPCG(1, 2))
	var all []engine.Acquisition
	var asked, free int64
	for range customers {
		asked += int64(random.ExpFloat64() * 1.25e6)
		a := engine.Acquisition{Asked: asked, Granted: asked + handoff, Handoff: -1}
		if asked < free {
			a.Granted, a.Handoff = free+handoff, handoff
		}
		a.Released = a.Granted + int64(random.ExpFloat64()*1e6)
		free = a.Released
		all = append(all, a)
	}
	return all
}

func TestThePredictionFindsWhatDoesNotFit(t *testing.T) {
	honest := queueOf(5000, 20_000)
	if p := lindley(honest); p.customers != 5000 || p.off() > 1e-6 || p.load() < 70 || p.load() > 90 {
		t.Errorf("an honest queue is off by %v %% at %v %%", p.off(), p.load())
	}
	for name, spoil := range map[string]func(i int, a *engine.Acquisition){
		"holds 5 % short": func(_ int, a *engine.Acquisition) { a.Released -= (a.Released - a.Granted) / 20 },
		"no handoffs":     func(_ int, a *engine.Acquisition) { a.Handoff = min(a.Handoff, 0) },
	} {
		spoiled := make([]engine.Acquisition, len(honest))
		for i, a := range honest {
			spoil(i, &a)
			spoiled[i] = a
		}
		if p := lindley(spoiled); p.off() < 2 {
			t.Errorf("%s: the waits are off by only %.2f %%", name, p.off())
		}
	}
	// Every tenth customer lost.
	var lost []engine.Acquisition
	for i, a := range honest {
		if i%10 > 0 {
			lost = append(lost, a)
		}
	}
	if p := lindley(lost); p.off() < 2 {
		t.Errorf("lost customers: the waits are off by only %.2f %%", p.off())
	}
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		note func(*Check)
		want Verdict
	}{
		"nothing measured": {func(*Check) {}, Inconclusive},
		"as wanted":        {func(c *Check) { c.want(true, "x", 1, "", "1") }, Pass},
		"not as wanted":    {func(c *Check) { c.want(true, "x", 1, "", "1"); c.want(false, "y", 2, "", "1") }, Fail},
		"not to be had":    {func(c *Check) { c.want(false, "x", math.NaN(), "", "1") }, Inconclusive},
		"not carried out":  {func(c *Check) { c.want(true, "x", 1, "", "1"); c.unsure("no Redis") }, Inconclusive},
		"fault and trouble": {func(c *Check) {
			c.unsure("restless")
			c.want(false, "x", 1, "", "2")
			c.want(false, "y", math.NaN(), "", "2")
		}, Fail},
	} {
		var c Check
		test.note(&c)
		if c.conclude(); c.Verdict != test.want {
			t.Errorf("%s: %s, want %s", name, c.Verdict, test.want)
		}
	}
}

func TestOverlapsAreThoseOfTheInstants(t *testing.T) {
	found := overlaps([]engine.Acquisition{
		{Granted: 100, Released: 200},
		{Granted: 0, Released: 100},   // touches the first
		{Granted: 190, Released: 300}, // 10 with it
		{Granted: 400, Released: 900},
		{Granted: 500, Released: 600}, // inside
	})
	if len(found) != 2 || found[0] != 10 || found[1] != 100 {
		t.Errorf("found %v", found)
	}
}
