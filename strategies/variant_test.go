package strategies_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all/goredis"
)

func names(variants []strategies.Variant) []string {
	var names []string
	for _, v := range variants {
		names = append(names, v.Name())
	}
	return names
}

func TestParseVariants(t *testing.T) {
	for list, want := range map[string][]string{
		"spin":                                {"spin"},
		"spin,pubsub":                         {"spin", "pubsub"},
		" spin , pubsub ,":                    {"spin", "pubsub"},
		"spin:backoff=fixed,base=5ms,pubsub":  {"spin:backoff=fixed,base=5ms", "pubsub"},
		"spin:base=5ms,backoff=fixed":         {"spin:backoff=fixed,base=5ms"},
		"spin:base=5000us":                    {"spin:base=5ms"},
		"spin,spin:base=5ms,spin":             {"spin", "spin:base=5ms"},
		"spin:base=5ms,spin:base=5000us":      {"spin:base=5ms"},
		"pubsub:watchdog=0,redsync:delay=1ms": {"pubsub:watchdog=false", "redsync:delay=1ms"},
		"pubsub,pubsub+gated:pubsub,fair":     {"pubsub", "pubsub+gated:pubsub", "fair"},
		"spin:base=5ms,tries=2+redsync:delay=1ms,spin": {
			"spin:base=5ms,tries=2+redsync:delay=1ms", "spin",
		},
	} {
		variants, err := strategies.ParseVariants(list)
		if err != nil {
			t.Errorf("%q: %v", list, err)
		} else if got := names(variants); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

func TestParseVariantsAll(t *testing.T) {
	elsewhere := 0 // in other stores than Redis
	for _, s := range strategies.All() {
		if s.Info.Store != "" {
			elsewhere++
		}
	}
	variants, err := strategies.ParseVariants("all")
	if err != nil {
		t.Fatal(err)
	}
	got := names(variants)
	if !slices.IsSorted(got) || len(got) != len(strategies.All())-elsewhere {
		t.Errorf("all is %q", got)
	}
	for _, name := range []string{"blpop", "local", "noop", "pubsub", "redsync", "spin"} {
		if !slices.Contains(got, name) {
			t.Errorf("all lacks %s", name)
		}
	}
}

// ParseVariants must report each fault in a list as a separate line of its error. command/testdata/badinputs.txt tests
// the messages.
func TestParseVariantsNamesEveryFault(t *testing.T) {
	for list, want := range map[string]int{
		"": 1, "spim": 1, "PubSub": 1, "spim,pubsup": 2, "base=5ms": 1, "spin:base=5": 1, "spin:base=": 1,
		"spin:bass=5ms": 1, "noop:x=1": 1, "pubsub:watchdog=maybe": 1, "spin:base=5ms,base=6ms": 1, "+pubsub,spin": 1,
		"pubsub+": 1, "pubsub+watchdog=false": 1, "pubsub+pubsub+pubsub": 1, "spim+pubsup": 2, "all+spin": 1,
		"pubsub+spin": 1, "pubsub+redisson-spin,fair+fenced,blpop+handoff": 3, "semaphore+semaphore:permits=2": 1,
		"semaphore+semaphore:expirable=true": 1, "local+local": 1, "spin:backoff=linear,base=5,cap=-1s,x": 4,
		"all:base=1ms": 1, ",": 1,
	} {
		_, err := strategies.ParseVariants(list)
		if err == nil {
			t.Errorf("%q was accepted", list)
		} else if got := strings.Count(err.Error(), "\n") + 1; got != want {
			t.Errorf("%q: %d faults, want %d:\n%v", list, got, want, err)
		}
	}
}

func TestInfoFollowsTheOptions(t *testing.T) {
	variants, err := strategies.ParseVariants("pubsub,pubsub:watchdog=false")
	if err != nil {
		t.Fatal(err)
	}
	if !variants[0].Info().Claims.Watchdog || variants[1].Info().Claims.Watchdog {
		t.Error("Claims.Watchdog differs from the option that starts the watchdog")
	}
}

func TestOpenNeedsItsNodes(t *testing.T) {
	variant, err := strategies.NewVariant("spin", nil)
	if err != nil {
		t.Fatal(err)
	}
	locker, err := variant.Open(strategies.Config{})
	if err == nil || !strings.Contains(err.Error(), "open spin") || locker != nil {
		t.Errorf("opened %v without a node: %v", locker, err)
	}
}

// For each list that ParseVariants accepts, ParseVariants must return the same variants again from their canonical
// names.
func FuzzParseVariants(f *testing.F) {
	for _, list := range []string{
		"spin", "all", "spin:backoff=fixed,base=5ms,pubsub", "spin,,=,:", "a:b:c=d", "pubsub:watchdog=T",
		"spin:base=1h1m1.5s", "redsync:delay=0", "=x", "spin:=1", "noop:x=1,local",
	} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		variants, err := strategies.ParseVariants(list)
		if err != nil {
			return
		}
		if len(variants) == 0 {
			t.Fatalf("ParseVariants(%q) returned neither variants nor an error", list)
		}
		canonical := names(variants)
		again, err := strategies.ParseVariants(strings.Join(canonical, ","))
		if err != nil {
			t.Fatalf("the canonical name of %q is %q, which is refused: %v", list, canonical, err)
		}
		if got := names(again); !slices.Equal(got, canonical) {
			t.Fatalf("the canonical name of %q is %q, whose canonical name is %q", list, canonical, got)
		}
	})
}
