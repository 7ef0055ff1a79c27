package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// kindAt returns the store that an address belongs to.
func kindAt(address string) (store.Store, error) {
	name, err := store.At(address)
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	return store.Lookup(name)
}

// examineAny examines the server of any store, with what all stores can report.
func examineAny(ctx context.Context, name string, at lockbench.StoreOptions, d *Document) error {
	kind, err := store.Lookup(name)
	if err != nil {
		return err
	}
	id := store.NewRunID()
	server, err := kind.Open(ctx, id, store.Options{Address: at.Address, Topology: at.Topology, CAFile: at.CAFile})
	if err != nil {
		d.Symptoms = append(d.Symptoms, unreached(err), machine(ctx))
		return err
	}
	d.Redis = server.Describe()
	e := anything{kind, server, name, id}
	for _, look := range []func(context.Context) Symptom{e.reachable, e.software, e.rights, e.limits, e.counters} {
		if ctx.Err() == nil {
			d.Symptoms = append(d.Symptoms, look(ctx))
		}
	}
	d.Symptoms = append(d.Symptoms, machine(ctx))
	return server.Close(context.WithoutCancel(ctx))
}

// anything examines a store with what all stores can report.
type anything struct {
	kind   store.Store
	server store.Server
	name   string
	id     string // of the session
}

func (e anything) reachable(ctx context.Context) Symptom {
	times, err := e.server.RoundTrips(ctx, engine.Prefix+e.id+":floor")
	if err != nil {
		return unreached(err)
	}
	about := e.server.Describe()
	if times.PingP50 == nil || times.PingP99 == nil {
		return symptom("reachable", Well, "%s, %s", about.Address, about.Network)
	}
	return symptom("reachable", Well, "%s, %s: the least request %v (median), %v (p99)", about.Address, about.Network,
		time.Duration(*times.PingP50).Round(time.Microsecond), time.Duration(*times.PingP99).Round(time.Microsecond))
}

func (e anything) software(context.Context) Symptom {
	about := e.server.Describe()
	says := fmt.Sprintf("%s %s", cmp.Or(about.Name, e.name), cmp.Or(about.Version, "of a version that it does not tell"))
	if about.Topology != "" {
		says += ", " + about.Topology
	}
	if len(about.Nodes) > 0 {
		says += ": " + strings.Join(about.Nodes, ", ")
	}
	s := symptom("server", Well, "%s", says)
	if about.Durability == "" {
		s.Says = append(s.Says, "it does not tell whether a write is on the disk before it is confirmed")
	} else {
		s.Says = append(s.Says, "durability: "+about.Durability)
	}
	return s
}

// rights makes every strategy of the store acquire and release once.
func (e anything) rights(ctx context.Context) Symptom {
	s := Symptom{Name: "rights", State: Well}
	tried := 0
	for _, strategy := range strategies.All() {
		if info := strategy.Info; info.Nodes == 0 || cmp.Or(info.Store, store.Redis) != e.name || e.server.Unfit(info) != "" {
			continue
		}
		v, err := strategies.NewVariant(strategy.Info.Name, nil)
		if err != nil {
			continue // a test checks the defaults
		}
		tried++
		if err := (engine.Job{Strategy: v, Workload: workloads.Default(), Target: e.server, Session: e.id}).Try(ctx); err != nil {
			s.State = Trouble
			s.Says = append(s.Says, oneLine(err))
		}
	}
	s.Says = slices.Insert(s.Says, 0, fmt.Sprintf("%d of %d strategies could acquire and release", tried-len(s.Says), tried))
	if needer, ok := e.kind.(store.Needer); ok && s.State == Trouble {
		s.Next = needer.Needs("lockbench")
	}
	return s
}

func (e anything) limits(ctx context.Context) Symptom {
	limits, err := e.server.Limits(ctx)
	switch {
	case err != nil:
		return unreached(err)
	case limits.MaxClients == 0:
		return symptom("limits", Unknown, "the server does not tell how many connections it takes")
	}
	s := symptom("limits", Well, "%d of %d connections are free", limits.MaxClients-limits.Connected, limits.MaxClients)
	if limits.MaxClients-limits.Connected < few {
		s.State, s.Next = Note, []string{"have the server take more connections for more than a few hundred --clients"}
	}
	return s
}

// counters says which costs will be unknown.
func (e anything) counters(ctx context.Context) Symptom {
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
		return symptom("counters", Note, "not told: %s, which will be dashes", strings.Join(missing, ", "))
	}
	return symptom("counters", Well, "CPU and commands are told")
}
