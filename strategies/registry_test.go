package strategies_test

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
)

func TestUnknownNameErrorListsKnownNames(t *testing.T) {
	for _, name := range []string{"spinn", "gated:spinn", "gatet:spin", "gated:", ""} {
		_, err := strategies.Lookup(name)
		var unknown *strategies.UnknownError
		if !errors.As(err, &unknown) || unknown.Name != name {
			t.Errorf("%q: %v", name, err)
			continue
		}
		for _, known := range []string{"spin", "gated:spin", "pubsub-broadcast"} {
			if !slices.Contains(unknown.Known, known) {
				t.Errorf("%q: %q is not among the known names", name, known)
			}
		}
		if slices.Contains(unknown.Known, "gated:semaphore") {
			t.Error("the names list a strategy that the wrapper does not fit")
		}
	}
}

// Open must work for a strategy that is not registered. After the registration, the strategy must be found by its name,
// and also behind a wrapper.
func TestStrategyRunsWithoutRegistration(t *testing.T) {
	name := "apart-" + rand.Text() // a new name for each run of the test, as the registry forgets none
	s := strategies.Define(strategies.Info{Name: name, Capacity: 1}, struct{}{},
		func(strategies.Config, struct{}) (baselines.NoopLocker, error) { return baselines.NoopLocker{}, nil })
	v, err := s.Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Open(strategies.Config{}); err != nil {
		t.Errorf("open the strategy: %v", err)
	}
	if _, err := strategies.Lookup(name); err == nil {
		t.Fatal("Lookup found the strategy before its registration")
	}
	s.Info.Doc = "It is a lock."
	strategies.RegisterStrategy(s)
	if v, err := strategies.NewVariant(name, nil); err != nil || v.Info().Doc != s.Info.Doc {
		t.Errorf("found %+v: %v", v.Info(), err)
	}
	if v, err := strategies.NewVariant("gated:"+name, nil); err != nil ||
		!strings.HasSuffix(v.Info().Doc, "\n"+s.Info.Doc) {
		t.Errorf("found %+v: %v", v.Info(), err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the second registration was accepted")
		}
	}()
	strategies.RegisterStrategy(s)
}

func TestRegisterRefusesBadNames(t *testing.T) {
	register := func(name string, defaults any) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		strategies.Register(strategies.Info{Name: name}, defaults,
			func(strategies.Config, any) (baselines.NoopLocker, error) { return baselines.NoopLocker{}, nil })
		return false
	}
	for _, name := range []string{"", "a b", "a,b", "a:b", "a=b", "spin"} {
		if !register(name, struct{}{}) {
			t.Errorf("%q was registered", name)
		}
	}
	for name, options := range map[string]any{
		"options-are-no-struct": 1,
		"an-option-is-a-list": struct {
			Nodes []string `opt:"nodes"`
		}{},
		"an-option-is-not-visible": struct {
			nodes int `opt:"nodes"`
		}{},
	} {
		if !register(name, options) {
			t.Errorf("%s, but it was registered", name)
		}
	}
}

func TestUnlistedStrategyIsNotFound(t *testing.T) {
	v := strategies.Unlisted(strategies.Info{Name: "hidden", Capacity: 3},
		func(strategies.Config) (baselines.NoopLocker, error) { return baselines.NoopLocker{}, nil })
	if v.Name() != "hidden" || v.Info().Capacity != 3 {
		t.Errorf("it is %s, %+v", v.Name(), v.Info())
	}
	if _, err := v.Open(strategies.Config{}); err != nil {
		t.Errorf("open the strategy: %v", err)
	}
	if _, err := strategies.Lookup("hidden"); err == nil {
		t.Error("it is found by name")
	}
}

func TestClaimsString(t *testing.T) {
	if got := (strategies.Claims{}).String(); got != "none" {
		t.Errorf("no claims print as %q", got)
	}
	all := strategies.Claims{
		Exclusion: true, Recovery: true, FIFO: true, Bounded: true, Fencing: true, Reentrant: true,
		Watchdog: true,
	}
	if got, want := all.String(), "exclusion, recovery, FIFO, fencing, re-entrant, watchdog"; got != want {
		t.Errorf("all claims print as %q, want %q: FIFO says more than bounded", got, want)
	}
	all.FIFO = false
	if got, want := all.String(),
		"exclusion, recovery, bounded overtaking, fencing, re-entrant, watchdog"; got != want {
		t.Errorf("all claims but FIFO print as %q, want %q", got, want)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	for _, test := range []struct {
		config strategies.Config
		nodes  int
		want   []string
	}{
		{strategies.Config{}, 0, nil},
		{strategies.Config{}, 1, []string{"nodes", "TTL"}},
		{strategies.Config{TTL: time.Second}, 3, []string{"nodes"}},
		{strategies.Config{TTL: time.Microsecond, Nodes: make([]any, 1)}, 1, []string{"TTL"}},
		{strategies.Config{TTL: time.Second, Nodes: make([]any, 2)}, 1, nil},
	} {
		err := test.config.Validate(test.nodes)
		if (err == nil) != (test.want == nil) {
			t.Errorf("%+v: %v", test.config, err)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v does not name %s", test.config, err, want)
			}
		}
	}
}

func TestProbe(t *testing.T) {
	var none *strategies.Probe
	none.Attempt()
	none.Wake(true)
	if got := none.Counts(); got != (strategies.ProbeCounts{}) {
		t.Errorf("a nil probe counted %+v", got)
	}
	probe := &strategies.Probe{}
	probe.Attempt()
	probe.Attempt()
	probe.Wake(true)
	probe.Wake(false)
	probe.Wake(false)
	if got, want := probe.Counts(), (strategies.ProbeCounts{Attempts: 2, Useful: 1, Futile: 2}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}
