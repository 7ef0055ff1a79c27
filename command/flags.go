package command

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads/spec"
)

// flags are those of run.
type flags struct {
	strategies []string
	workload   spec.Spec
	rounds     int
	outputs    []string
	quiet      bool
	redis      lockbench.RedisOptions
	noFloors   bool
	dryRun     bool

	given source
}

// defaultInstances is how many application instances the clients spread over
// unless --instances says it.
const defaultInstances = 10

func newFlags() *flags {
	return &flags{workload: spec.Default(), rounds: 1, redis: lockbench.RedisOptions{Address: "auto"}}
}

// register adds the flags in the order in which help shows them.
func (f *flags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	w := &f.workload
	add := func(v *value, name, short, help string) { set.VarP(v, name, short, help) }
	toggle := func(target *bool, name, short, help string) {
		add(switchValue(target), name, short, help)
		set.Lookup(name).NoOptDefVal = "true"
	}

	add(listValue("list", &f.strategies), "strategy", "s", "strategies to run, each with its options: spin:backoff=fixed,base=5ms,pubsub; "+
		"all for every one; repeatable (default "+strings.Join(defaultStrategies(), ",")+")")
	add(intValue(&w.Clients), "clients", "c", "clients in all")
	add(durationValue(&w.Duration), "duration", "d", "how long to measure each run")
	add(int64Value(&w.Iterations), "iterations", "n", "end a run after that many acquisitions in all instead")
	add(durationValue(&w.Warmup), "warmup", "w", "how long to warm up before measuring")
	add(intValue(&f.rounds), "runs", "", "runs of each strategy, interleaved and shuffled by the seed")
	add(int64Value(&w.Seed), "seed", "", "of everything that is random")

	// What pflag would print as the default depends on --clients.
	add(&value{kind: "n", set: intValue(&w.Instances).set, text: func() string { return "" }}, "instances", "",
		"application instances the clients spread over, each with its own connections (default 10, or fewer for fewer clients)")
	add(intValue(&w.Keys), "keys", "", "locks the clients choose among")
	add(ofText("dist", &w.KeyDist), "key-dist", "", "how they choose: uniform, zipf:0.99, or hotspot:0.8/2 for four in five among the first two")
	add(ofText("dist", &w.Hold), "hold", "", "how long to hold a lock: 5ms, uniform:1ms,5ms, exp:5ms (mean), lognormal:5ms,0.8 (median, sigma) or file:PATH")
	add(ofText("dist", &w.Think), "think", "", "pause between a release and the next acquire, likewise")
	add(&value{kind: "n/s", set: ofText("", &w.Rate).set, text: func() string { return "" }}, "rate", "r",
		"open loop: that many arrivals a second in all, whatever becomes of the earlier ones; --clients bounds those in flight (default closed loop)")
	add(textValue("kind", (*string)(&w.Arrivals)), "arrivals", "", "of an open loop: poisson or constant")
	add(durationValue(&w.TTL), "ttl", "", "of a lease, when its holder dies")
	add(optionalDuration(&w.Timeout), "timeout", "", "longest wait for a lock; 0 is a try-lock (default unlimited)")
	add(textValue("work", (*string)(&w.Work)), "work", "", "what a holder does: none, or counter, which reads a counter, holds, and writes it back one higher")
	toggle(&w.Coalesce, "coalesce", "", "clients of an instance that want the same key share one acquisition (singleflight)")
	add(intValue(&w.Pool), "pool", "", "connections of an instance (default its clients, at most 64)")

	registerRedis(set, &f.redis)
	add(textValue("form", &f.redis.Topology), "topology", "", "single, nodes:N, replicas:N or cluster:N: what to start, or what must be at the addresses")
	add(textValue("image", &f.redis.Image), "image", "", "container image of Redis")
	toggle(&f.redis.Pin, "pin", "", "put Redis and lockbench on different CPUs")
	toggle(&f.noFloors, "no-floors", "", "do not measure first what this machine can do at best")

	add(listValue("format", &f.outputs), "output", "o", "table or json, with =FILE to write a file; repeatable (default table)")
	toggle(&f.quiet, "quiet", "q", "no progress on standard error")
	toggle(&f.dryRun, "dry-run", "", "print the plan and how long it will take, and touch no server")
	f.given.set = set
}

// registerRedis adds the flags that say where Redis is.
func registerRedis(set *pflag.FlagSet, r *lockbench.RedisOptions) {
	set.VarP(textValue("url", &r.Address), "redis", "u", "redis:// or rediss:// URL or host:port of a server, several with commas, else container, process or auto; "+
		"a password belongs in LOCKBENCH_REDIS, where ps does not show it")
	set.Var(textValue("file", &r.CAFile), "ca-file", "PEM certificates to trust for rediss://")
}

// defaultStrategies are the usual contenders, as far as this program has them;
// else every strategy it has.
func defaultStrategies() []string {
	var usual, all []string
	for _, s := range strategies.All() {
		all = append(all, s.Info.Name)
	}
	for _, name := range []string{"spin", "pubsub", "blpop", "redsync"} {
		if slices.Contains(all, name) {
			usual = append(usual, name)
		}
	}
	if len(usual) == 0 {
		return all
	}
	return usual
}
