// Package redis is the store Redis. Package servers finds or starts its servers and injects their faults.
package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func init() { store.Register(store.Redis, Store{}) }

// Store is Redis, or another server with Redis's protocol.
type Store struct{}

// Title returns the official name of the store.
func (Store) Title() string { return "Redis" }

// options converts the options of package store to the options of package servers. The address image:NAME means a
// container of that image, and process:PATH a process of that program.
func options(o store.Options, runID string) servers.Options {
	program := ""
	if image, ok := strings.CutPrefix(o.Address, "image:"); ok {
		o.Address, o.Image = "container", image
	}
	if path, ok := strings.CutPrefix(o.Address, "process:"); ok {
		o.Address, program = "process", path
	}
	return servers.Options{
		Program: program, RunID: runID, Address: o.Address, Topology: o.Topology, CAFile: o.CAFile, Image: o.Image,
		CertFile: o.CertFile, KeyFile: o.KeyFile, Password: o.Password,
		Durability: o.Durability, AllowFaults: o.AllowFaults, Logf: o.Logf, Warn: o.Warn,
	}
}

// Schemes returns the URL schemes of Redis's addresses. The form host:port has no scheme.
func (Store) Schemes() []string {
	return []string{"redis", "rediss", "unix", "valkey", "valkeys", "redis+sentinel", "rediss+sentinel"}
}

// Validate implements store.Store. It returns every error in the options.
func (Store) Validate(o store.Options) error {
	_, durability := store.ParseDurability(string(o.Durability))
	if durability != nil {
		durability = fmt.Errorf("--durability: %w", durability)
	}
	return errors.Join(options(o, "").Validate(), durability)
}

// Layout returns the requested topology. Without a request it is a single node if lockbench starts the server, and
// unknown for a user's servers.
func (Store) Layout(o store.Options) store.Layout {
	topology, err := servers.ParseTopology(o.Topology)
	asked := options(o, "")
	l := layout{Topology: topology, at: asked, started: asked.Started(), allowed: o.AllowFaults}
	switch {
	case err != nil || topology.Kind != "":
	case l.started:
		l.Kind = servers.Single
	default:
		l.most = asked.Nodes()
	}
	return l
}

// layout is a topology with its addresses. started is true if lockbench starts the servers.
type layout struct {
	servers.Topology
	at               servers.Options
	started, allowed bool
	most             int // number of a user's addresses if their topology is not known; else 0
}

// Unfit returns the reason why a strategy cannot run on the servers, as reported by servers.Options or
// servers.Topology; "" if it can. An unknown topology has at most one independent node per address.
func (l layout) Unfit(info strategies.Info) string {
	topology := l.Topology
	if l.most > 0 {
		topology = servers.Topology{Kind: servers.Independent, Count: l.most}
	}
	return cmp.Or(l.at.Unfit(info), topology.Unfit(info))
}

// Impossible returns the errors that servers.Check reports for the faults.
func (l layout) Impossible(all []workloads.Fault) []error {
	return servers.Check(all, l.Topology, l.started, l.allowed)
}

// Open returns the result of the function Open as a store.Server.
func (Store) Open(ctx context.Context, runID string, o store.Options) (store.Server, error) {
	s, err := Open(ctx, runID, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Open finds or starts the Redis that the options describe, with servers.Open.
func Open(ctx context.Context, runID string, o store.Options) (*servers.Server, error) {
	return servers.Open(ctx, options(o, runID))
}
