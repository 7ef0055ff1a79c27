// Package doctor examines a server and this machine before a measurement, by a list of checks. Each returns one
// symptom.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// storeAt returns the store that an address belongs to, and its name.
func storeAt(address string) (store.Store, string, error) {
	name, err := store.At(address)
	if err != nil {
		return nil, "", fmt.Errorf("--redis: %w", err)
	}
	kind, err := store.Lookup(name)
	return kind, name, err
}

func options(at lockbench.StoreOptions) store.Options {
	return store.Options{Address: at.Address, Topology: at.Topology, CAFile: at.CAFile}
}

// Validate returns all errors of the address that can be found without the server, joined.
func Validate(at lockbench.StoreOptions) error {
	switch {
	case at.Address == "":
		return errors.New("--redis: give the address of the server to look at")
	case (servers.Options{Address: at.Address}).Started():
		return errors.New("--redis must be the address of a server: one that lockbench starts itself is well")
	}
	kind, _, err := storeAt(at.Address)
	if err != nil {
		return err
	}
	return kind.Validate(options(at))
}

// examination is an examination of a server.
type examination struct {
	kind   store.Store
	name   string // of the store
	server store.Server
	id     string // of the session
}

// checks apply to every store. Redis has more, in redis.go.
var checks = []func(examination, context.Context) Symptom{
	examination.reachable, examination.software, examination.rights, examination.limits, examination.counters,
	redisOnly(examination.memory), redisOnly(examination.clock), redisOnly(examination.persistence),
}

// Run examines the server at an address, and this machine, in a few seconds: whether a run would work
// there, and what would spoil its figures. It returns the document also with an error, which means
// that the server cannot be used, or that ctx ended.
func Run(ctx context.Context, at lockbench.StoreOptions) (*Document, error) {
	d := &Document{Head: document.Begin(schema)}
	d.Environment, d.Redis = measure.Environment(), results.Redis{Source: "address"}
	err := d.examine(ctx, at)
	d.Symptoms = append(d.Symptoms, machine(ctx))
	d.Finished = time.Now()
	return d, errors.Join(ctx.Err(), err)
}

func (d *Document) examine(ctx context.Context, at lockbench.StoreOptions) error {
	kind, name, err := storeAt(at.Address)
	if err != nil {
		return err
	}
	id := store.NewRunID()
	server, err := kind.Open(ctx, id, options(at))
	if err != nil {
		d.Symptoms = append(d.Symptoms, unreached(err))
		return err
	}
	d.Redis = server.Describe()
	for _, check := range checks {
		if ctx.Err() != nil {
			break
		}
		if s := check(examination{kind, name, server, id}, ctx); s.Name != "" {
			d.Symptoms = append(d.Symptoms, s)
		}
	}
	return server.Close(context.WithoutCancel(ctx))
}

// unreached returns the symptom of a server that cannot be used.
func unreached(err error) Symptom {
	s := Symptom{Name: "reachable", State: Trouble, Says: []string{oneLine(err)}}
	if next := servers.NextStep(err.Error()); next != "" {
		s.Next = []string{next}
	}
	return s
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(untrusted.Printable(err.Error())), " ")
}

// symptom returns a symptom with one sentence.
func symptom(name string, state State, format string, args ...any) Symptom {
	return Symptom{Name: name, State: state, Says: []string{fmt.Sprintf(format, args...)}}
}

func (e examination) reachable(ctx context.Context) Symptom {
	times, err := e.server.RoundTrips(ctx, engine.Prefix+e.id+":floor")
	if err != nil {
		return unreached(err)
	}
	about := e.server.Describe()
	s := symptom("reachable", Well, "%s, %s", about.Address, about.Network)
	if times.PingP50 != nil && times.PingP99 != nil {
		s.Says[0] += fmt.Sprintf(": the shortest request takes %v (median), %v (p99)",
			time.Duration(*times.PingP50).Round(time.Microsecond),
			time.Duration(*times.PingP99).Round(time.Microsecond))
	}
	return s
}

func (e examination) software(context.Context) Symptom {
	about := e.server.Describe()
	s := symptom("server", Well, "%s %s", cmp.Or(about.Name, e.name), cmp.Or(about.Version, "of an unknown version"))
	if about.Protocol > 0 {
		s.Says[0] += fmt.Sprintf(", RESP%d", about.Protocol)
	}
	if about.Topology != "" {
		s.Says[0] += ", " + about.Topology
	}
	if len(about.Nodes) > 0 {
		s.Says[0] += ": " + strings.Join(about.Nodes, ", ")
	}
	s.Says = append(s.Says, "durability: "+cmp.Or(about.Durability,
		"it does not say whether a write is on the disk before it is confirmed"))
	switch threads := about.IOThreads; {
	case e.name != store.Redis:
	case threads == nil:
		s.Says = append(s.Says, "it does not report its io-threads: CPU is shown as if there were none")
	case *threads > 1:
		s.State = Note
		const says = "%d I/O threads, whose waiting costs CPU: the main thread is shown apart"
		s.Says = append(s.Says, fmt.Sprintf(says, *threads))
	}
	return s
}

// rights makes every strategy that fits the server acquire and release once.
func (e examination) rights(ctx context.Context) Symptom {
	s := Symptom{Name: "rights", State: Well}
	tried := 0
	for _, strategy := range strategies.All() {
		info := strategy.Info
		if info.Nodes == 0 || cmp.Or(info.Store, store.Redis) != e.name || e.server.Unfit(info) != "" {
			continue
		}
		v, err := strategies.NewVariant(info.Name, nil)
		if err != nil {
			continue // a test checks the defaults
		}
		tried++
		job := engine.Job{Strategy: v, Workload: workloads.Default(), Target: e.server, Session: e.id}
		if info.Capacity == 0 {
			job.Workload.Work = workloads.WorkCounter // for strategies that are no locks and do the work themselves
		}
		if err := job.Try(ctx); err != nil {
			s.State = Trouble
			s.Says = append(s.Says, oneLine(err))
			if next := servers.NextStep(err.Error()); next != "" && len(s.Next) == 0 {
				s.Next = []string{next}
			}
		}
	}
	if needer, ok := e.kind.(store.Needer); ok && s.State == Trouble {
		s.Next = needer.Needs("lockbench")
	}
	worked := fmt.Sprintf("%d of %d strategies could acquire and release", tried-len(s.Says), tried)
	s.Says = slices.Insert(s.Says, 0, worked)
	if missing := e.refused(ctx); len(missing) > 0 {
		if s.State == Well {
			s.State = Note
		}
		s.Says = append(s.Says, "missing for all figures: "+strings.Join(missing, " "))
	}
	return s
}

// few is less than the connections that the usual 500 clients may need.
const few = 1200

func (e examination) limits(ctx context.Context) Symptom {
	limits, err := e.server.Limits(ctx)
	if err != nil {
		return unreached(err)
	}
	files := "any number of files"
	if most, err := measure.MaxOpenFiles(); err != nil {
		files = "an unknown number of files"
	} else if most > 0 {
		files = fmt.Sprintf("%d files", most)
	}
	if limits.MaxClients == 0 {
		return symptom("limits", Unknown,
			"the server does not report how many connections it takes; this process may open %s", files)
	}
	free := limits.MaxClients - limits.Connected
	s := symptom("limits", Well, "%d of %d connections are free; this process may open %s",
		free, limits.MaxClients, files)
	if free < few {
		s.State = Note
		s.Next = []string{"let the server take more connections (maxclients) for more than a few hundred --clients"}
	}
	return s
}

// counters says which costs will be unknown.
func (e examination) counters(ctx context.Context) Symptom {
	reading, err := e.server.Read(ctx)
	if err != nil {
		return unreached(err)
	}
	var missing []string
	if reading.CPU == nil {
		missing = append(missing, "CPU")
	}
	if reading.Commands == nil {
		missing = append(missing, "commands")
	}
	if len(missing) > 0 {
		return symptom("counters", Note, "the server does not report %s: shown as dashes",
			strings.Join(missing, ", "))
	}
	return symptom("counters", Well, "the server reports CPU and commands")
}

const (
	watched    = time.Second
	restless   = 90.0 // percent of all cores idle, below which other processes are busy
	stolen     = 1.0  // percent of all cores
	slowWakeUp = 2 * time.Millisecond
)

// machine observes this machine for a second in which lockbench does nothing.
func machine(ctx context.Context) Symptom {
	before := measure.ReadHealth()
	select {
	case <-time.After(watched):
	case <-ctx.Done():
	}
	after := measure.ReadHealth()
	e := measure.Environment()
	late := time.Duration(e.TimerOvershoot).Round(time.Microsecond)
	s := symptom("machine", Well, "%d CPUs, sleeps end %v late", e.CPUs, late)
	if late > slowWakeUp {
		s.State = Note
	}
	if idle := after.Since(before).MachineIdle; idle == nil {
		s.Says = append(s.Says, "how busy it is the system does not say")
	} else {
		s.Says = append(s.Says, fmt.Sprintf("%.0f %% of all cores idle while lockbench did nothing", *idle))
		if *idle < restless {
			s.State = Note
			s.Next = []string{"other processes are busy: measure on a quieter machine, or with --runs 5 or more"}
		}
	}
	if steal := after.StolenSince(before); steal != nil && *steal > stolen {
		s.State = Note
		const says = "%.1f %% of all cores stolen by other machines on the same hardware"
		s.Says = append(s.Says, fmt.Sprintf(says, *steal))
	}
	return s
}
