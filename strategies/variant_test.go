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
		" spin , pubsub ,":                    {"spin", "pubsub"}, //nolint:gocritic // spaces are passed over
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

func TestParseVariantsNamesEveryFault(t *testing.T) {
	for list, want := range map[string][]string{ // one a line
		"":                       {"no strategy named"},
		" , ":                    {"no strategy named"}, //nolint:gocritic // nothing but spaces
		"spim":                   {`unknown strategy "spim"`},
		"PubSub":                 {`unknown strategy "PubSub"`},
		"completely-different":   {`unknown strategy "completely-different"`},
		"spim,pubsup":            {`"spim"`, `"pubsup"`},
		"base=5ms":               {`option "base=5ms" belongs to no strategy`},
		"spin:base=5":            {`strategy spin: option base: "5" is not a duration such as 500us, 5ms or 2s`},
		"spin:base=":             {`strategy spin: option base: "" is not a duration`},
		"spin:bass=5ms":          {`strategy spin: no option "bass" (there are: backoff, base, cap, tries, wait-replicas, wait-timeout, wait-anyway)`},
		"noop:x=1":               {`strategy noop: no option "x": it has none`},
		"pubsub:watchdog=maybe":  {`strategy pubsub: option watchdog: "maybe" is not true or false`},
		"spin:base=5ms,base=6ms": {`strategy spin: option "base" set twice`},
		"+pubsub,spin":           {`a + stands between two strategies, not before "pubsub"`},
		"pubsub+":                {`not before ""`},
		"pubsub+watchdog=false":  {`not before "watchdog=false"`},
		"pubsub+pubsub+pubsub":   {`not before "pubsub"`},
		"spim+pubsup":            {`unknown strategy "spim"`, `unknown strategy "pubsup"`},
		"all+spin":               {`unknown strategy "all"`},
		"pubsub+spin": {"strategy pubsub+spin: the two do not share a lock: " +
			"the one has the keys and messages of Redisson RLock, the other those of SET NX PX"},
		"pubsub+redisson-spin,fair+fenced,blpop+handoff": {"Redisson RSpinLock", "Redisson RFairLock", "those of handoff"},
		"semaphore+semaphore:permits=2":                  {"the one has 4 holders at a time, the other 2"},
		"semaphore+semaphore:expirable=true":             {"the other those of semaphore"},
		"local+local":                                    {"they work across a limited number of application instances"},
		"spin:backoff=linear,base=5,cap=-1s,x": {
			`strategy spin: option base: "5"`,
			`strategy spin: no backoff "linear"`, "strategy spin: cap must be positive", `"x"`,
		},
		"all:base=1ms": {`unknown strategy "all"`},
	} {
		_, err := strategies.ParseVariants(list)
		if err == nil {
			t.Errorf("%q was accepted", list)
			continue
		}
		if lines := strings.Split(err.Error(), "\n"); len(lines) != len(want) {
			t.Errorf("%q: %d faults, want %d:\n%v", list, len(lines), len(want), err)
		}
		for _, fault := range want {
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("%q:\n%v\nlacks: %s", list, err, fault)
			}
		}
	}
}

func TestInfoFollowsTheOptions(t *testing.T) {
	variants, err := strategies.ParseVariants("pubsub,pubsub:watchdog=false")
	if err != nil {
		t.Fatal(err)
	}
	if !variants[0].Info().Claims.Watchdog || variants[1].Info().Claims.Watchdog {
		t.Error("the watchdog must be claimed when, and only when, it runs")
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

// Whatever is accepted has a canonical name that means the same.
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
			t.Fatalf("%q is neither variants nor a fault", list)
		}
		canonical := names(variants)
		again, err := strategies.ParseVariants(strings.Join(canonical, ","))
		if err != nil {
			t.Fatalf("%q is named %q, which is refused: %v", list, canonical, err)
		}
		if got := names(again); !slices.Equal(got, canonical) {
			t.Fatalf("%q is named %q, which is named %q", list, canonical, got)
		}
	})
}
