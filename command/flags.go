package command

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/presets"
)

// flags are the flags of run.
type flags struct {
	strategies  []string
	workload    workloads.Draft
	file        string // workload file, or preset
	rounds      int
	outputs     []string
	thresholds  []string
	quiet       bool
	redis       lockbench.StoreOptions
	others      map[string]lockbench.StoreOptions // of the other stores, by their names
	noBaselines bool
	dryRun      bool
	session     string
	start       time.Time

	given source
}

func newFlags() *flags {
	return &flags{rounds: 1, redis: lockbench.StoreOptions{Address: "auto"}, others: map[string]lockbench.StoreOptions{}}
}

// register adds the flags in the order in which help shows them.
func (f *flags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	add := func(v *value, name, short, help string) { set.VarP(v, name, short, help) }

	add(listValue("list", &f.strategies), "strategy", "s", "strategies to run, each with its options: spin:backoff=fixed,base=5ms,pubsub; "+
		"all for every one in Redis; repeatable (default "+strings.Join(defaultStrategies(), ",")+")")
	add(textValue("name", &f.file), "workload", "", "a preset ("+strings.Join(presets.Names(), ", ")+") or a YAML file with a line for each of the options that follow")
	for _, field := range workloads.Fields() {
		add(&value{
			kind: field.Kind, text: func() string { return field.Default },
			set: func(s string) error { return f.workload.Give(field.Name, s) },
		}, field.Name, field.Short, field.Help)
		if field.Switch {
			set.Lookup(field.Name).NoOptDefVal = "true"
		}
	}
	add(intValue(&f.rounds), "runs", "", "runs of each strategy, interleaved and shuffled by the seed")

	add(f.stores().addresses(), "redis", "u", addressHelp+"; image:NAME and process:PROGRAM are what to start; repeatable, for other stores: etcd://, postgres://, zk://")
	add(textValue("file", &f.redis.CAFile), "ca-file", "", "PEM certificates to trust for encrypted addresses")
	add(f.stores().topologies(), "topology", "", "single, nodes:N, replicas:N or cluster:N: what to start, or what must be at the addresses; of other stores with commas: nodes:5,etcd:3")
	add(f.stores().durability(), "durability", "", "memory, default or fsync: what a crash of a store that lockbench starts may lose (default: Redis all, the others as they are shipped)")
	add(textValue("image", &f.redis.Image), "image", "", "container image of Redis")
	addSwitch(set, &f.redis.Pin, "pin", "", "put Redis and lockbench on different CPUs")
	add(textValue("name", &f.session), "session", "", "measure together with other lockbenches that are given the same new name, the same plan and another --seed: they share locks; see merge")
	add(instantValue(&f.start), "start-at", "", "begin the first warm-up at an instant, 2026-03-01T12:30:00Z or +5s, and the other runs at fixed times after it, so that several lockbenches measure together")
	addSwitch(set, &f.redis.AllowFaults, "allow-faults-on-my-server", "", "let --fault disturb a Redis that lockbench did not start")
	addSwitch(set, &f.noBaselines, "no-baselines", "", "do not measure first what this machine can do at best")

	add(listValue("format", &f.outputs), "output", "o", strings.Join(reportFormats(nil).names(), ", ")+"; with =FILE to write a file; repeatable (default table)")
	add(listValue("limit", &f.thresholds), "threshold", "", "limit that a figure must keep, else exit code 99: 'wait:p(99)<50ms', 'wait{strategy:pubsub}:p(99)<50ms', "+
		"'redis_cpu_per_acq<80us', 'violations==0'; metrics are in docs/FORMATS.md; repeatable")
	addSwitch(set, &f.quiet, "quiet", "q", "no progress on standard error")
	addSwitch(set, &f.dryRun, "dry-run", "", "print the plan and how long it will take, and touch no server")
	f.given.set = set
}

func (f *flags) stores() stores { return stores{&f.redis, f.others} }

// addressHelp says what --redis takes.
const addressHelp = "redis:// or rediss:// URL or host:port of a server, several with commas, else container, process or auto; " +
	"a password belongs in LOCKBENCH_REDIS, where ps does not show it"

// registerRedis adds the flags that say where Redis is.
func registerRedis(set *pflag.FlagSet, r *lockbench.StoreOptions) {
	set.VarP(stores{redis: r}.addresses(), "redis", "u", addressHelp)
	set.Var(textValue("file", &r.CAFile), "ca-file", "PEM certificates to trust for rediss://")
}

// registerServer registers the flags of one server, of any store.
func registerServer(set *pflag.FlagSet, o *lockbench.StoreOptions) {
	v := textValue("url", &o.Address)
	v.set = func(address string) error {
		_, err := store.At(address)
		o.Address = address
		return err
	}
	set.VarP(v, "redis", "u", "the server's address: redis://, or that of another store, as etcd://")
	set.Var(textValue("file", &o.CAFile), "ca-file", "PEM certificates to trust for encrypted addresses")
}

// defaultStrategies returns those of the usual strategies that this program has, or all
// its strategies if it has none of them.
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
