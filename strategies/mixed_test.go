package strategies_test

import (
	"slices"
	"testing"

	"github.com/lockbench/lockbench/strategies"
)

func TestMixedStrategyClaims(t *testing.T) {
	variants, err := strategies.ParseVariants(
		"fair+gated:fair,pubsub+pubsub:watchdog=false,redlock+redlock,redislock+spin")
	if err != nil {
		t.Fatal(err)
	}
	var infos []strategies.Info
	for _, v := range variants {
		infos = append(infos, v.Info())
	}
	if c := infos[0].Claims; c.FIFO || !c.Exclusion || !c.Recovery || !c.Watchdog {
		t.Errorf("Mix of fair and the mutex claims FIFO: %v", c)
	}
	if c := infos[1].Claims; c.Watchdog || !c.Exclusion || infos[1].Driver || infos[1].BlackBox {
		t.Errorf("%+v", infos[1])
	}
	if infos[2].Nodes < 3 || !infos[3].BlackBox || !slices.Contains(infos[3].Rights.Commands, "set") ||
		!slices.Contains(infos[3].Rights.Commands, "msetnx") {
		t.Errorf("%+v, %+v", infos[2], infos[3])
	}
}

// Connects lists the kinds of connections that a strategy's driver supports, such as "tls". A mixed strategy must list
// only the kinds that both drivers support. A lock without a driver must not shorten the other lock's list.
func TestMixedStrategyConnections(t *testing.T) {
	of := func(driver bool, connects ...string) strategies.Variant {
		return strategies.Unlisted(strategies.Info{Name: "lock", Driver: driver, Connects: connects},
			func(strategies.Config) (strategies.Locker, error) { return nil, nil })
	}
	for _, test := range []struct {
		a, b strategies.Variant
		want []string
	}{
		{of(false), of(true, "unix", "tls"), []string{"unix", "tls"}},
		{of(true, "tls"), of(false), []string{"tls"}},
		{of(true, "unix", "tls"), of(true, "tls"), []string{"tls"}},
		{of(true), of(true, "tls"), nil},
	} {
		mixed, err := strategies.Mix(test.a, test.b)
		if err != nil {
			t.Fatal(err)
		}
		if got := mixed.Info().Connects; !slices.Equal(got, test.want) {
			t.Errorf("%v and %v connect by %v", test.a.Info().Connects, test.b.Info().Connects, got)
		}
	}
}

func TestMixNeedsTheSameKeys(t *testing.T) {
	for _, names := range []string{
		"pubsub+spin", "blpop:one-key=true+blpop", "semaphore+pubsub",
	} {
		if _, err := strategies.ParseVariants(names); err == nil {
			t.Errorf("Mix accepted %s, which do not share a lock", names)
		}
	}
	variants, err := strategies.ParseVariants("handoff+handoff:linger=0s")
	if err != nil || variants[0].Info().Since.Redis == "" {
		t.Errorf("%v: Info does not give the version of Redis", err)
	}
}

func TestMixedStrategyInstancesAlternate(t *testing.T) {
	mixed, err := strategies.ParseVariants("pubsub+gated:pubsub")
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]int{1: 2, 2: 2, 3: 2, 10: 10} {
		if got := mixed[0].Instances(n); got != want {
			t.Errorf("%d instances for %d, want %d", got, n, want)
		}
	}
	var parts []strategies.Variant
	for i := range 3 {
		parts = append(parts, mixed[0].Part(i))
	}
	if got := names(parts); !slices.Equal(got, []string{"pubsub", "gated:pubsub", "pubsub"}) {
		t.Errorf("the parts are %q", got)
	}
	if alone := parts[0]; alone.Part(3).Name() != "pubsub" || alone.Instances(3) != 3 {
		t.Error("a strategy that is not mixed has parts")
	}
}
