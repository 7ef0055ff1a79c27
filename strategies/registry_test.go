package strategies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/noop"
)

func TestLookupSuggestsTheNearestName(t *testing.T) {
	for mistyped, want := range map[string]string{
		"spinn": "spin", "sipn": "spin", "SPIN": "spin", "pub-sub": "pubsub", "blop": "blpop",
		"redsink": "redsync", "loca": "local", "none": "noop", "": "", "zzzzzzzzzz": "",
	} {
		_, err := strategies.Lookup(mistyped)
		if err == nil {
			t.Errorf("%q was found", mistyped)
			continue
		}
		_, suggestion, _ := strings.Cut(err.Error(), "did you mean ")
		if got := strings.Trim(suggestion, `"?`); got != want {
			t.Errorf("%q: suggested %q, want %q (%v)", mistyped, got, want, err)
		}
	}
}

func TestRegisterRefusesBadNames(t *testing.T) {
	register := func(name string, defaults any) (panicked bool) {
		defer func() { panicked = recover() != nil }()
		strategies.Register(strategies.Info{Name: name}, defaults,
			func(strategies.Config, any) (noop.Locker, error) { return noop.Locker{}, nil })
		return false
	}
	for _, name := range []string{"", "a b", "a,b", "a:b", "a=b", "spin"} {
		if !register(name, struct{}{}) {
			t.Errorf("%q was registered", name)
		}
	}
	if !register("options-are-no-struct", 1) {
		t.Error("options that are no struct were registered")
	}
}

func TestAnUnlistedStrategyRunsAndIsNotFound(t *testing.T) {
	v := strategies.Unlisted(strategies.Info{Name: "hidden", Capacity: 3},
		func(strategies.Config) (noop.Locker, error) { return noop.Locker{}, nil })
	if v.Name() != "hidden" || v.Info().Capacity != 3 {
		t.Errorf("it is %s, %+v", v.Name(), v.Info())
	}
	if _, err := v.Open(strategies.Config{}); err != nil {
		t.Errorf("open it: %v", err)
	}
	if _, err := strategies.Lookup("hidden"); err == nil {
		t.Error("it is found by name")
	}
}

func TestClaimsPrint(t *testing.T) {
	if got := (strategies.Claims{}).String(); got != "none" {
		t.Errorf("no claims print as %q", got)
	}
	all := strategies.Claims{Exclusion: true, Recovery: true, FIFO: true, Bounded: true, Fencing: true, Reentrant: true, Watchdog: true}
	if got, want := all.String(), "exclusion, recovery, FIFO, fencing, re-entrant, watchdog"; got != want {
		t.Errorf("all claims print as %q, want %q: FIFO says more than bounded", got, want)
	}
	all.FIFO = false
	if got, want := all.String(), "exclusion, recovery, bounded overtaking, fencing, re-entrant, watchdog"; got != want {
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
		{strategies.Config{TTL: time.Microsecond, Nodes: make([]strategies.Node, 1)}, 1, []string{"TTL"}},
		{strategies.Config{TTL: time.Second, Nodes: make([]strategies.Node, 2)}, 1, nil},
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
