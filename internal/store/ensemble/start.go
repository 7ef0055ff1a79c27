package ensemble

import (
	"context"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// Servers is a single server or an ensemble, with the processes that lockbench has started. Own is empty if the servers
// are the user's.
type Servers struct {
	Layout
	store.Without
	RunID string
	About results.Redis
	Own   []launch.Started
	Meter *store.Meter
}

// Describe returns what the servers are and why they were chosen. The description contains no secret.
func (s *Servers) Describe() results.Redis { return s.About }

// Local reports whether all servers are on this machine.
func (s *Servers) Local() bool { return s.About.Network != "remote" }

// Close removes the servers that lockbench started. It works even if ctx is already done.
func (s *Servers) Close(ctx context.Context) error {
	return launch.Each(ctx, s.Own, launch.Started.Close)
}

// Find removes leftovers of dead runs from this machine, and then describes the user's servers.
func (s *Servers) Find(ctx context.Context, o store.Options, addresses ...string) {
	launch.Sweep(ctx).Log(o.Logf)
	s.About = results.Redis{Source: "address", Network: store.NetworkTo(addresses[0]), Why: "its address was given"}
	if slices.ContainsFunc(addresses, store.Remote) {
		s.About.Network = "remote"
	}
}

// Start starts the servers that the options request, and describes them.
func (s *Servers) Start(ctx context.Context, f launch.Fleet, o store.Options) error {
	way, own, err := f.Start(ctx, launch.Request{Address: o.Address, Image: o.Image, Logf: o.Logf})
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	s.Own = own
	s.About = results.Redis{
		Source: way.Source, Network: way.Network, Why: way.Why, Durability: string(store.Synced),
	}
	if o.Durability == store.InMemory {
		s.About.Durability = string(store.InMemory)
	}
	return nil
}

// Settle waits until all servers that lockbench started are ready. It pings a user's servers once.
func (s *Servers) Settle(
	ctx context.Context, ping func(context.Context) error, ready func(context.Context, launch.Starting) error,
) error {
	if !s.Started {
		return ping(ctx)
	}
	await := func(m launch.Started, ctx context.Context) error { return ready(ctx, m) }
	if err := launch.Each(ctx, s.Own, await); err != nil {
		return fmt.Errorf("%w: wait for the servers: %w", store.ErrUnreachable, err)
	}
	return nil
}
