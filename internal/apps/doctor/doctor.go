// Package doctor examines a server and this machine before a measurement, by a list of checks. Each finds
// one symptom.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v9 "github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis"
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
	return store.Options{Address: at.Address, Topology: at.Topology, CAFile: at.CAFile,
		CertFile: at.CertFile, KeyFile: at.KeyFile, Password: at.Password}
}

// Validate returns all errors of the address that can be found without the server, joined.
func Validate(at lockbench.StoreOptions) error {
	switch {
	case at.Address == "":
		return errors.New("--redis: give the address of the server to look at")
	case options(at).Started():
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

// checks are the checks of a server, in order; memory and snapshots find nothing at another store.
var checks = []struct {
	name string
	find func(examination, context.Context, *Symptom)
}{
	{"reachable", examination.reachable},
	{"server", examination.software},
	{"rights", examination.rights},
	{"limits", examination.limits},
	{"counters", examination.counters},
	{"memory", examination.memory},
	{"snapshots", examination.snapshots},
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
		s := Symptom{Name: "reachable"}
		s.trouble(err)
		d.Symptoms = append(d.Symptoms, s)
		return err
	}
	d.Redis = server.Describe()
	for _, check := range checks {
		s := Symptom{Name: check.name, State: Well}
		check.find(examination{kind, name, server, id}, ctx, &s)
		if len(s.Says) > 0 {
			d.Symptoms = append(d.Symptoms, s)
		}
	}
	return server.Close(context.WithoutCancel(ctx))
}

// say adds a sentence.
func (s *Symptom) say(format string, args ...any) {
	s.Says = append(s.Says, fmt.Sprintf(format, args...))
}

// note says that figures are less exact, or not known, and what to do about it.
func (s *Symptom) note(next ...string) { s.State, s.Next = Note, next }

// trouble says what the server refuses, and what to do about it.
func (s *Symptom) trouble(err error) {
	s.State = Trouble
	s.say("%s", strings.Join(strings.Fields(untrusted.Printable(err.Error())), " "))
	if next := servers.NextStep(err.Error()); next != "" && s.Next == nil {
		s.Next = []string{next}
	}
}

func (e examination) reachable(ctx context.Context, s *Symptom) {
	times, err := e.server.RoundTrips(ctx, engine.Prefix+e.id+":floor")
	switch {
	case err != nil:
		s.trouble(err)
	case times.PingP50 == nil || times.PingP99 == nil:
		s.say("it answers")
	default:
		s.say("the shortest request takes %v (median), %v (p99)",
			time.Duration(*times.PingP50).Round(time.Microsecond),
			time.Duration(*times.PingP99).Round(time.Microsecond))
	}
}

func (e examination) software(_ context.Context, s *Symptom) {
	s.say("%s %s", e.name, e.server.Describe().Describe())
}

// rights makes every strategy that fits the server acquire and release once.
func (e examination) rights(ctx context.Context, s *Symptom) {
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
			s.trouble(err)
		}
	}
	worked := fmt.Sprintf("%d of %d strategies could acquire and release", tried-len(s.Says), tried)
	s.Says = slices.Insert(s.Says, 0, worked)
	if needer, ok := e.kind.(store.Needer); ok && s.State == Trouble {
		s.Next = needer.Needs("lockbench")
	}
	if missing := e.refused(ctx); len(missing) > 0 {
		if s.State == Well {
			s.State = Note
		}
		s.say("missing for all figures: %s", strings.Join(missing, " "))
	}
}

// few is less than the connections that the usual 500 clients may need.
const few = 1200

func (e examination) limits(ctx context.Context, s *Symptom) {
	limits, err := e.server.Limits(ctx)
	free := limits.MaxClients - limits.Connected
	switch {
	case err != nil:
		s.trouble(err)
	case limits.MaxClients == 0:
		s.note()
		s.say("the server does not report how many connections it takes")
	default:
		s.say("%d of %d connections are free", free, limits.MaxClients)
		if free < few {
			s.note("let the server take more connections (maxclients) for more than a few hundred --clients")
		}
	}
}

// counters says which costs will be unknown.
func (e examination) counters(ctx context.Context, s *Symptom) {
	reading, err := e.server.Read(ctx)
	switch {
	case err != nil:
		s.trouble(err)
	case reading.CPU != nil && reading.Commands != nil:
		s.say("the server reports CPU and commands")
	default:
		s.note()
		s.say("the server does not report all of CPU and commands: what it does not is shown as a dash")
	}
}

const (
	watched    = time.Second
	restless   = 90.0 // percent of all cores idle, below which other processes are busy
	stolen     = 1.0  // percent of all cores
	slowWakeUp = 2 * time.Millisecond
)

// machine observes this machine for a second in which lockbench does nothing.
func machine(ctx context.Context) Symptom {
	s := Symptom{Name: "machine", State: Well}
	before := measure.ReadHealth()
	select {
	case <-time.After(watched):
	case <-ctx.Done():
	}
	after := measure.ReadHealth()
	e := measure.Environment()
	late := time.Duration(e.TimerOvershoot).Round(time.Microsecond)
	s.say("%d CPUs, sleeps end %v late", e.CPUs, late)
	if late > slowWakeUp {
		s.note()
	}
	if steal := after.StolenSince(before); steal != nil && *steal > stolen {
		s.note()
		s.say("%.1f %% of all cores stolen by other machines on the same hardware", *steal)
	}
	if idle := after.Since(before).MachineIdle; idle != nil {
		s.say("%.0f %% of all cores idle while lockbench did nothing", *idle)
		if *idle < restless {
			s.note("other processes are busy: measure on a quieter machine, or with --runs 5 or more")
		}
	}
	return s
}

// schema is the version of the document.
const schema = "lockbench/doctor/1"

// Document is what doctor found about a server and about this machine.
type Document struct {
	document.Head           // of Redis only the source, if it was not reached
	Symptoms      []Symptom `json:"symptoms"`
}

// Symptom is the result of one check.
type Symptom struct {
	Name  string   `json:"name"` // reachable, server, rights, …
	State State    `json:"state"`
	Says  []string `json:"says"`           // what was found, one sentence each
	Next  []string `json:"next,omitempty"` // what to do about it
}

// State rates a symptom.
type State string

// The states.
const (
	Well    State = "ok"
	Note    State = "note"    // figures are less exact, or not known
	Trouble State = "trouble" // something cannot be measured
)

// In returns the names of the symptoms in a state.
func (d *Document) In(s State) []string {
	var names []string
	for _, symptom := range d.Symptoms {
		if symptom.State == s {
			names = append(names, symptom.Name)
		}
	}
	return names
}

// Lay writes the document for people: a line for each symptom, and below it what to do.
func (d *Document) Lay(p *layout.Page) {
	for _, s := range d.Symptoms {
		label := s.Name
		if s.State == Trouble {
			label = "!" + label
		}
		for i, says := range s.Says {
			if i > 0 {
				label = ""
			} else {
				says = string(s.State) + ": " + says
			}
			p.Entry(label, says)
		}
		for _, next := range s.Next {
			p.Entry("", "next: "+next)
		}
	}
}

// ask makes requests of the first node, if the server is a Redis.
func (e examination) ask(ctx context.Context, do func(context.Context, v9.UniversalClient) error) error {
	server, ok := e.server.(redis.Server)
	if !ok {
		return errors.ErrUnsupported
	}
	return server.Ask(ctx, 0, do)
}

// refused returns the rights that lockbench itself would use and does not have.
func (e examination) refused(ctx context.Context) (missing []string) {
	_ = e.ask(ctx, func(ctx context.Context, client v9.UniversalClient) error {
		for _, ask := range [][]any{
			{"+info", "INFO", "server"},
			{"+config|get", "CONFIG", "GET", "maxclients"},
			{"+client|list", "CLIENT", "LIST"},
			{"+scan", "SCAN", "0", "COUNT", "1"},
			{"+pubsub|channels", "PUBSUB", "CHANNELS", engine.Prefix + "none"},
		} {
			if err := client.Do(ctx, ask[1:]...).Err(); servers.Refused(err) == "NOPERM" {
				missing = append(missing, ask[0].(string))
			}
		}
		return nil
	})
	return missing
}

// info returns a section of INFO; nil if the server does not give it.
func (e examination) info(ctx context.Context, section string) (fields map[string]string) {
	_ = e.ask(ctx, func(ctx context.Context, client v9.UniversalClient) error {
		text, err := client.Info(ctx, section).Result()
		if err == nil {
			fields = replies.ParseInfo(text)
		}
		return err
	})
	return fields
}

func (e examination) memory(ctx context.Context, s *Symptom) {
	fields := e.info(ctx, "memory")
	if fields == nil {
		return
	}
	const mb = 1 << 20
	most, _ := strconv.ParseFloat(fields["maxmemory"], 64)
	now, _ := strconv.ParseFloat(fields["used_memory"], 64)
	policy := fields["maxmemory_policy"]
	limit := "no maxmemory"
	if most > 0 {
		limit = fmt.Sprintf("a maxmemory of %.3g MB", most/mb)
	}
	s.say("%.3g MB used, %s, %s", now/mb, limit, policy)
	if most > 0 && policy != "" && policy != "noeviction" {
		s.note("two clients may hold an evicted lock at once: keep locks on a server with noeviction")
	}
}

func (e examination) snapshots(ctx context.Context, s *Symptom) {
	var config map[string]string
	err := e.ask(ctx, func(ctx context.Context, client v9.UniversalClient) (err error) {
		config, err = client.ConfigGet(ctx, "save").Result()
		return err
	})
	switch {
	case err != nil:
	case config["save"] == "":
		s.say("none are written")
	default:
		s.say("they are written (save %s)", untrusted.Printable(config["save"]))
		s.note("a fork may fall into a window: measure on a server without them, or as in production, and say so")
	}
}
