// Package etcd is the store etcd: one member or three that lockbench starts, or a user's own,
// which it leaves as it was.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Name is the store's name in strategies.
const Name = "etcd"

func init() { store.Register(Name, Store{}) }

// Store is etcd.
type Store struct{}

// Schemes returns the schemes of its addresses.
func (Store) Schemes() []string { return []string{"etcd", "etcds"} }

// Validate returns every error of the options, see store.Store.
func (Store) Validate(o store.Options) error {
	var problems []error
	if _, err := members(o.Topology); err != nil {
		problems = append(problems, err)
	}
	if o.Pin {
		problems = append(problems, errors.New("--pin cannot be had with etcd so far"))
	}
	if _, err := store.ParseDurability(string(o.Durability)); err != nil {
		problems = append(problems, fmt.Errorf("--durability: %w", err))
	}
	switch {
	case !o.Started():
		if _, err := parseAddress(o); err != nil {
			problems = append(problems, err)
		}
		if o.Durability != "" {
			problems = append(problems, errors.New("--durability needs an etcd that lockbench starts itself: it does not change the settings of yours"))
		}
	case o.CAFile != "":
		problems = append(problems, errCAFile)
	}
	return errors.Join(problems...)
}

var errCAFile = errors.New("--ca-file is for etcds:// addresses")

// members parses a topology; "" gives 0, which means not specified.
func members(topology string) (int, error) {
	switch topology {
	case "":
		return 0, nil
	case "etcd", "etcd:1", "single":
		return 1, nil
	case "etcd:3":
		return 3, nil
	}
	return 0, fmt.Errorf("--topology %s: etcd is started as etcd:1 or etcd:3", topology)
}

// Layout is one member by default; a user's etcd is not known yet.
func (Store) Layout(o store.Options) store.Layout {
	n, _ := members(o.Topology) // Validate reports the error
	if n == 0 && o.Started() {
		n = 1
	}
	return layout{n, o.Started()}
}

// layout is the number of members, 0 if not known, with who started them.
type layout struct {
	members int
	started bool
}

// Unfit says why a strategy cannot run there; "" if it can.
func (l layout) Unfit(info strategies.Info) string {
	if info.Nodes > 1 {
		return fmt.Sprintf("it needs %d independent nodes, and the members of an etcd are one", info.Nodes)
	}
	return ""
}

// Primaries returns the number of members to which every instance connects.
func (l layout) Primaries() int { return max(l.members, 1) }

// Impossible returns an error for every fault that is not possible.
func (l layout) Impossible(all []workloads.Fault) []error {
	return ensemble.AllImpossible(all, l.impossible)
}

// Open finds or starts the etcd that the options name, see store.Store.
func (k Store) Open(ctx context.Context, runID string, o store.Options) (store.Server, error) {
	if err := k.Validate(o); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	s := newServer(runID)
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

func (s *Server) open(ctx context.Context, o store.Options) error {
	asked, _ := members(o.Topology)
	s.description = results.Redis{Name: Name}
	if o.Started() {
		if err := s.start(ctx, max(asked, 1), o); err != nil {
			return err
		}
	} else {
		launch.Sweep(ctx).Log(o.Logf)
		to, err := parseAddress(o)
		if err != nil {
			return fmt.Errorf("%w: %w", store.ErrConfig, err)
		}
		s.reach(to)
		s.description.Source, s.description.Network, s.description.TLS = "address", "loopback", to.tls != nil
		if slices.ContainsFunc(to.endpoints, store.Remote) {
			s.description.Network = "remote"
		}
	}
	s.layout = layout{len(s.members), o.Started()}
	if err := s.connect(ctx); err != nil {
		return err
	}
	if !s.started {
		var left store.Swept
		s.keys().Look(ctx, &left)
		left.Tell(s.description.Address, o.Warn, o.Logf)
	}
	if asked > 0 && asked != len(s.members) {
		return fmt.Errorf("%w: --topology %s, and there are %d addresses", store.ErrConfig, o.Topology, len(s.members))
	}
	return nil
}
