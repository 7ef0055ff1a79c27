package ensemble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// Place is a member's place among all, from 0, with the ports of each. The first port is for clients.
type Place struct {
	Number int
	Ports  [][]int
}

func (p Place) pick() (int, error) { return p.Ports[p.Number][0], nil }
func (p Place) beside(int) []int   { return p.Ports[p.Number][1:] }

// Fleet says how the members of a store are started.
type Fleet struct {
	Members, Ports int          // how many, and of how many ports each
	Image          launch.Image // of containers; the user's options may name another
	ProcessFirst   bool
	Taken          func(err error) bool            // another process took a port
	Program        func() (path string, err error) // on this machine; the error says what to install
	Server         func(Place) launch.Server
}

// Servers are those that lockbench has started; none if they are the user's.
type Servers struct {
	Own []launch.Started
	Pin *launch.Pinning
}

// GeneratorCPUs returns the CPUs to which the generator is pinned; nil without pinning.
func (s *Servers) GeneratorCPUs() []int { return s.Pin.GeneratorCPUs() }

// Close undoes the pinning and removes the servers. It also works with a context that has ended.
func (s *Servers) Close(ctx context.Context) error {
	return errors.Join(s.Pin.Unpin(), launch.Each(ctx, s.Own, launch.Started.Close))
}

// Start starts the members as the options ask for, and describes them.
func (s *Servers) Start(ctx context.Context, f Fleet, o store.Options, runID string) (about results.Redis, err error) {
	if o.Pin {
		if s.Pin, err = launch.NewPinning(); err != nil {
			return about, err
		}
	}
	f.Image.Wanted = cmp.Or(o.Image, os.Getenv(f.Image.Variable))
	way, own, err := launch.Ways{
		Asked: o.Address, Image: f.Image, Logf: o.Logf, ProcessFirst: f.ProcessFirst, Program: f.Program,
		Start: func(ctx context.Context, begin launch.Begin) ([]launch.Started, error) {
			member := func(ctx context.Context, n int, ports [][]int) (launch.Started, error) {
				at := Place{n, ports}
				m := f.Server(at)
				m.RunID, m.CPUs, m.Pick, m.Beside = runID, s.Pin.ServerCPUs(), at.pick, at.beside
				if f.Members > 1 { // they use this machine's loopback interface
					m.Container.Network = launch.OnHost
				}
				return begin(ctx, m)
			}
			return Start(ctx, f.Members, f.Ports, f.Taken, member)
		},
	}.Run(ctx)
	if err != nil {
		return about, fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	s.Own = own
	about = results.Redis{
		Source: way.Source, Image: way.Image, Network: way.Network, Why: way.Why, PinnedCPUs: s.Pin.ServerCPUs(),
		Durability: string(store.Synced),
	}
	if o.Durability == store.InMemory {
		about.Durability = string(store.InMemory)
	}
	return about, nil
}

// Start starts n members at the same time: none is ready before most of them run. begin starts a
// member by its place; ports has perMember free ports for each member. If another process takes one of
// them meanwhile, which taken recognises, Start tries again with other ports.
func Start(ctx context.Context, n, perMember int, taken func(error) bool, begin Begin) ([]launch.Started, error) {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		free, err := launch.FreePorts(n * perMember)
		if err != nil {
			return nil, err
		}
		ports := slices.Collect(slices.Chunk(free, perMember))
		started, err := launch.All(ctx, n, func(ctx context.Context, place int) (launch.Started, error) {
			return begin(ctx, place, ports)
		})
		if err == nil || attempt == attempts || ctx.Err() != nil || !taken(err) {
			return started, err
		}
	}
}

// Begin starts the member at a place. With an error, what it returns is not used.
type Begin func(ctx context.Context, place int, ports [][]int) (launch.Started, error)
