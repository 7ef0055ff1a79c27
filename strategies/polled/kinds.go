package polled

import (
	_ "embed" // the texts
	"time"

	"github.com/lockbench/lockbench/strategies"
)

var (
	//go:embed setnx.md
	setNXDoc string
	//go:embed setnx-expire.md
	setNXExpireDoc string
	//go:embed spin.md
	spinDoc string
)

// Strategies describes the locks, to be registered and opened by name.
func Strategies() []strategies.Strategy {
	expire := SetNXExpireOptions{Delay: 10 * time.Millisecond, Check: atomically}
	return []strategies.Strategy{
		strategies.Define(strategies.Info{
			Doc: setNXDoc, Name: "setnx", Capacity: 1, Nodes: 1,
			Summary: "SETNX without TTL, polled; GET then DEL to release: the naive lock",
			Claims:  strategies.Claims{Exclusion: true},
			Caveat: "a holder that crashes blocks the lock for ever; " +
				"a release may delete somebody else's lock once anything but a holder has removed the key",
			Rights: rights("setnx", "get", "del"),
		}, SetNXOptions{10 * time.Millisecond}, openSetNX),
		strategies.Define(expire.Refine(strategies.Info{
			Doc: setNXExpireDoc, Name: "setnx-expire", Capacity: 1, Nodes: 1,
			Summary: "SETNX, then EXPIRE as a second command, polled",
			Rights:  rights("setnx", "eval", "evalsha", "get", "del", "pexpire", "script|load"),
		}), expire, openSetNXExpire),
		strategies.Define(strategies.Info{
			Doc: spinDoc, Name: "spin", Capacity: 1, Nodes: 1,
			Summary: "SET NX PX, polled with backoff",
			Claims:  strategies.Claims{Exclusion: true, Recovery: true},
			Limits:  []strategies.Limit{strategies.ByRedisClock()},
			Rights:  rights("set", "eval", "evalsha", "get", "del", "pexpire", "script|load"),
		}, SpinDefaults(), OpenSpin),
	}
}

func rights(commands ...string) strategies.Rights {
	return strategies.Rights{Keys: []string{"{key}"}, Commands: commands}
}
