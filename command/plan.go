package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/watch"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// flags holds the values of run's flags. Its method plan makes a lockbench.Plan from them.
type flags struct {
	strategies  []string
	workload    workloads.Draft
	file        string // workload file, or preset
	all         string // file of --file, which may set any of the flags
	rounds      int
	outputs     *outputs[*results.Report]
	thresholds  []string
	quiet       bool
	stores      stores
	noBaselines bool
	dryRun      bool
	others      bool // the flags come from another author's file and must not start a program
	generators  lockbench.Generators
	watched     watch.Addresses
	notes       []string // notes on names that recognised replaced
}

// anySession is the default value of --session.
const anySession = "default"

func newFlags() *flags {
	redis := lockbench.StoreOptions{Address: "auto"}
	return &flags{stores: stores{&redis, map[string]lockbench.StoreOptions{}}, outputs: reportOutputs()}
}

// register adds the flags in the order in which help shows them.
func (f *flags) register(set *pflag.FlagSet) {
	set.SortFlags = false
	set.StringArrayVarP(&f.strategies, "strategy", "s", nil,
		"`list` of strategies to run, each with its options: spin:base=5ms,pubsub; "+
			"all for every strategy in Redis; exec:NAME or exec:COMMAND for a driver; A+B for half of the clients each; "+
			"repeatable "+
			"(default "+strings.Join(defaultStrategies(), ",")+")")
	set.StringVarP(&f.all, "file", "f", "", "YAML `file` with a line for any of these flags: strategies, workload, "+
		"servers, thresholds, outputs; flags and variables override it")
	set.IntVar(&f.rounds, "runs", 1, "`number` of runs of each strategy, interleaved and shuffled by the seed")
	set.BoolVar(&f.noBaselines, "no-baselines", false, "skip the measurement of the limits of this machine")
	set.BoolVar(&f.dryRun, "dry-run", false, "print the plan and its expected duration, and use no server")
	workload, servers, generators, outputs := group("Workload"), group("Servers"), group("Generators"), group("Outputs")
	registerWorkload(workload, &f.file, &f.workload, workloads.Fields())
	f.registerServers(servers)
	f.registerGenerators(generators)
	f.registerOutputs(outputs)
	addGroups(set, workload, servers, generators, outputs)
}

func (f *flags) registerServers(set *pflag.FlagSet) {
	redis := f.stores.redis
	f.stores.register(set, "; image:NAME or process:PROGRAM starts that server; "+
		"repeatable, for other stores: etcd://, postgres://, zk://")
	f.stores.registerTopology(set, "; for other stores, with commas: nodes:5,etcd:3")
	set.Func("durability", "`class` of durability of the stores that lockbench starts: memory, default or fsync "+
		"(default: memory for Redis, the store's default for others)", func(text string) error {
		_, err := store.ParseDurability(text)
		redis.Durability = text
		return err
	})
	registerImage(set, redis)
	set.BoolVar(&redis.AllowFaults, "allow-faults-on-my-server", false,
		"allow --fault on a Redis that lockbench did not start")
}

func (f *flags) registerGenerators(set *pflag.FlagSet) {
	g := &f.generators
	set.IntVar(&g.Number, "generators", 1, "`number` of lockbench processes with these flags that measure the same "+
		"locks: they begin each run together, and the first writes the common report")
	set.IntVar(&g.Index, "generator", -1,
		"`index` of this process, from 0 (default JOB_COMPLETION_INDEX, else a free index)")
	set.Lookup("generator").DefValue = ""
	set.StringVar(&g.Session, "session", anySession, "`name` of the group of generators, if several groups use one "+
		"Redis")
	set.DurationVar(&g.Patience, "join-timeout", 2*time.Minute, "`time` for which generators wait for a missing generator")
}

func (f *flags) registerOutputs(set *pflag.FlagSet) {
	f.outputs.register(set)
	set.StringArrayVar(&f.thresholds, "threshold", nil, "`limit` of a figure; beyond it the exit code is 99: "+
		"'wait:p(99)<50ms', 'redis_cpu_per_acq<80us', 'violations==0'; docs/FORMATS.md lists the metrics and the limits "+
		"of one strategy; repeatable")
	address := func(to *string, parse func(string) (string, error)) func(string) error {
		return func(text string) (err error) {
			*to, err = parse(text)
			return err
		}
	}
	set.Func("metrics", "`address` at which Prometheus scrapes the runs while lockbench measures "+
		"them: 9464 on loopback, or HOST:PORT; otlp pushes them to OTEL_EXPORTER_OTLP_ENDPOINT instead",
		address(&f.watched.Metrics, watch.ParseMetrics))
	set.Func("live", "`address` of a page that shows the runs while lockbench measures them, and "+
		"then the report: 5665 on loopback, or HOST:PORT", address(&f.watched.Live, watch.ParseAddress))
	registerQuiet(set, &f.quiet)
}

// parsed parses the flags of a run that another process executes. If anotherBuild is set, it ignores unknown flags,
// because the other process may run a build that has flags which this build lacks.
func parsed(words []string, anotherBuild bool) (*flags, *pflag.FlagSet, error) {
	f, set := newFlags(), pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = anotherBuild
	set.Usage = func() {}
	f.register(set)
	makePatient(set)
	return f, set, set.Parse(words)
}

// ofRuns returns the flags of runs that other builds execute, including those from their --file. It ignores errors,
// which the runs report.
func ofRuns(words []string) (*flags, *input) {
	f, set, _ := parsed(words, true)
	in := &input{set: set, origins: workloads.Origins{}}
	_ = in.file(f.all, &f.workload)
	return f, in
}

func registerQuiet(set *pflag.FlagSet, quiet *bool) {
	set.BoolVarP(quiet, "quiet", "q", false,
		"print no progress on standard error, and no table if all outputs are files")
}

func registerImage(set *pflag.FlagSet, redis *lockbench.StoreOptions) {
	set.StringVar(&redis.Image, "image", "", "container `image` of Redis")
}

// registerWorkload adds a flag for each workload option, and --workload, which names a file that sets these options.
func registerWorkload(set *pflag.FlagSet, file *string, draft *workloads.Draft, fields []workloads.Field) {
	set.StringVar(file, "workload", "", "`name` of a preset ("+strings.Join(workloads.Presets(), ", ")+
		") or of a YAML file with the options that follow")
	for _, field := range fields {
		set.VarP(option{field, draft}, field.Name, field.Short, field.Help)
		if field.Switch {
			set.Lookup(field.Name).NoOptDefVal = "true"
		}
	}
}

// option is the flag.Value of one workload option. For a list of values lockbench runs a sweep.
type option struct {
	workloads.Field
	draft *workloads.Draft
}

func (o option) String() string        { return o.Default }
func (o option) Type() string          { return o.Kind }
func (o option) Set(text string) error { return o.draft.Give(o.Name, text) }

// defaultStrategies returns the usual strategies that are registered in this program. It returns all registered
// strategies if none of the usual ones is registered.
func defaultStrategies() []string {
	all := strategyNames()
	usual := slices.DeleteFunc([]string{"spin", "pubsub", "blpop", "redsync"}, func(name string) bool {
		return !slices.Contains(all, name)
	})
	if len(usual) == 0 {
		return all
	}
	return usual
}

// stores holds, for each store, the options that the flags set.
type stores struct {
	redis  *lockbench.StoreOptions
	others map[string]lockbench.StoreOptions // by name; nil if only Redis is allowed
}

// change applies a function to the options of the named store.
func (s stores) change(name string, change func(*lockbench.StoreOptions)) error {
	options := s.others[name]
	switch {
	case name == store.Redis:
		change(s.redis)
		return nil
	case s.others == nil:
		return fmt.Errorf("this command takes only Redis, not %s", name)
	}
	change(&options)
	s.others[name] = options
	return nil
}

// register adds the access flags and --redis. --redis can be repeated, once for each store. One value lists all servers
// of a store, separated by commas.
func (s stores) register(set *pflag.FlagSet, more string) {
	given := map[string]bool{}
	set.FuncP("redis", "u", "`url` (redis://, rediss://, redis+sentinel://) or host:port of a server, "+
		"several with commas, else container, process or auto"+more+" (default auto)", func(address string) error {
		name, err := storeAt(address)
		if err == nil && given[name] {
			err = errors.New("two values name the same store: give all nodes of a topology in one value, separated by commas")
		}
		if err != nil {
			return err
		}
		given[name] = true
		return s.change(name, func(o *lockbench.StoreOptions) { o.Address = address })
	})
	registerAccess(set, s.redis)
}

// storeAt is like store.At but returns an error for an empty address, because a job whose secret is missing must not
// measure the default server.
func storeAt(address string) (string, error) {
	if address == "" {
		return "", errors.New("the value is empty: give an address or auto, or leave out the flag")
	}
	return store.At(address)
}

// registerAccess adds the flags for certificates and the password. --redis-password is hidden, because ps shows
// arguments; its environment variable is the safe way to pass a password.
func registerAccess(set *pflag.FlagSet, o *lockbench.StoreOptions) {
	set.StringVar(&o.CAFile, "ca-file", "", "`file` of PEM certificates to trust for encrypted addresses")
	set.StringVar(&o.CertFile, "cert", "", "`file` with the PEM certificate of this client, if Redis requires one")
	set.StringVar(&o.KeyFile, "key", "", "`file` with the PEM key of --cert")
	set.Func("redis-password-file", "`file` with the password of Redis, for an address without one "+
		"(ps shows an address); or set LOCKBENCH_REDIS_PASSWORD", func(file string) error {
		text, err := untrusted.ReadFile(file)
		if err != nil {
			return err
		}
		o.Password = strings.TrimRight(string(text), "\r\n")
		return nil
	})
	o.Password = os.Getenv("REDISCLI_AUTH") // the variable of redis-cli
	set.StringVar(&o.Password, "redis-password", o.Password, "")
	set.Lookup("redis-password").DefValue = ""
	_ = set.MarkHidden("redis-password") // the flag exists
}

// registerServer adds the flags for one server of any store.
func registerServer(set *pflag.FlagSet, o *lockbench.StoreOptions) {
	set.FuncP("redis", "u", "`url` of the server: redis://, or of another store, such as etcd:// (default auto)",
		func(address string) error {
			_, err := storeAt(address)
			o.Address = address
			return err
		})
	registerAccess(set, o)
}

// registerTopology adds --topology. Its value is the topology of Redis and, as NAME:N, those of other stores, separated
// by commas.
func (s stores) registerTopology(set *pflag.FlagSet, more string) {
	set.Func("topology",
		"`form` of the servers to start, or of the addresses: single, nodes:N, replicas:N or cluster:N"+
			more, func(text string) error {
			given := map[string]bool{}
			for form := range strings.SplitSeq(text, ",") {
				name, _, _ := strings.Cut(form, ":")
				if !slices.Contains(store.Names(), name) {
					name = store.Redis
				}
				if given[name] {
					return fmt.Errorf("%q gives two topologies for %s: give only one", text, name)
				}
				given[name] = true
				if err := s.change(name, func(o *lockbench.StoreOptions) { o.Topology = form }); err != nil {
					return err
				}
			}
			return nil
		})
}

// complete returns the options of the stores other than Redis, including the options that apply to every store.
func (s stores) complete() map[string]lockbench.StoreOptions {
	all := maps.Clone(s.others)
	for _, name := range store.Names() {
		if name == store.Redis {
			continue
		}
		o := all[name]
		o.Durability, o.AllowFaults = s.redis.Durability, s.redis.AllowFaults
		if o.Address != "" {
			o.CAFile = s.redis.CAFile
		}
		all[name] = o
	}
	return all
}

// plan returns the plan that the flags define, and all errors in the flags. Each error names its flag.
func (f *flags) plan() (lockbench.Plan, error) {
	points, sweep := f.workload.Points()
	if len(f.strategies) == 0 {
		f.strategies = defaultStrategies()
	}
	find := driver.Asked(context.Background())
	switch {
	case f.others:
		find = driver.Refused
	case f.dryRun:
		find = driver.Unasked
	}
	f.strategies, f.notes = recognised(f.strategies, !f.others)
	variants, unknown := driver.Parse(find, f.strategies...)
	plan := lockbench.Plan{
		Strategies: variants,
		Workload:   points[0].Workload,
		Rounds:     f.rounds,
		Redis:      *f.stores.redis,
		Stores:     f.stores.complete(),
		Baselines:  !f.noBaselines,
		Generators: f.generators,
	}
	var problems []error
	g, text := &plan.Generators, os.Getenv("JOB_COMPLETION_INDEX") // set by Kubernetes
	if g.Number == 0 {
		problems = append(problems, errors.New("--generators must be at least 1, not 0"))
	}
	switch {
	case g.Index < -1:
		problems = append(problems, fmt.Errorf("--generator must be at least 0, not %d", g.Index))
	case g.Number < 2 && g.Index >= 0:
		problems = append(problems, errors.New("--generator needs --generators N"))
	case g.Number > 1 && g.Index < 0 && text != "":
		var err error
		if g.Index, err = strconv.Atoi(text); err != nil || g.Index < 0 {
			problems = append(problems, fmt.Errorf("JOB_COMPLETION_INDEX must be a whole number of at least 0, not %q", text))
		}
	}
	if g.Number == 1 && g.Session != anySession {
		problems = append(problems, errors.New("--session needs --generators N"))
	}
	if len(points) > 1 {
		plan.Sweep = points
	}
	problems = append(problems, sweep, prefixed("strategy", unknown))
	for _, problem := range flatten(plan.Validate()) {
		// If every strategy is unknown, problems already has that error, so the plan's error about --strategy is left out.
		if len(variants) > 0 || !strings.HasPrefix(problem.Error(), "--strategy") {
			problems = append(problems, problem)
		}
	}
	return plan, errors.Join(problems...)
}

// shown returns the addresses and topology of a store without user, password and URL options. The address must be
// valid.
func shown(r lockbench.StoreOptions) string {
	var places []string
	for address := range strings.SplitSeq(r.Address, ",") {
		scheme, rest, found := strings.Cut(address, "://")
		if !found {
			scheme, rest = "", address
		} else {
			scheme += "://"
		}
		rest, _, _ = strings.Cut(rest, "?")
		places = append(places, scheme+rest[strings.LastIndex(rest, "@")+1:])
	}
	if r.Topology != "" {
		places = append(places, r.Topology)
	}
	return strings.Join(places, ", ")
}
