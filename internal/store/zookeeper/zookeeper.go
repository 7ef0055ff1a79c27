// Package zookeeper is the store ZooKeeper: a server or an ensemble that lockbench starts, or the
// user's servers, whose tree it leaves as it was.
package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Store is ZooKeeper. Locks on it have Info.Store zookeeper.
type Store struct{}

// name is that of the store.
const name = "zookeeper"

func init() { store.Register(name, Store{}) }

// Title returns the store's name.
func (Store) Title() string { return "ZooKeeper" }

// Speaks says whether a ZooKeeper answers there to a four-letter word.
func (Store) Speaks(ctx context.Context, addr string) bool {
	answer := store.Knock(ctx, addr, "srvr\n")
	return strings.HasPrefix(answer, "Zookeeper version") || strings.Contains(answer, "ZooKeeper instance is not currently serving") ||
		strings.Contains(answer, "is not in the whitelist")
}

// Needs returns the rights that a user of ZooKeeper needs.
func (Store) Needs(string) []string {
	return []string{
		"to create, delete, read and write nodes below the root, or below PATH of zk://host:port/PATH (setAcl PATH auth:bench:cdrw)",
		"and a quorum of its members: a lock is a write that they agree on",
	}
}

// Schemes returns the schemes of its addresses.
func (Store) Schemes() []string { return []string{"zk"} }

// ErrUnreachable says that no ZooKeeper could be reached or started.
var ErrUnreachable = fmt.Errorf("ZooKeeper %w", store.ErrUnreachable)

// Validate returns every error of the options, see store.Store.
func (Store) Validate(o store.Options) error {
	_, topology := parseTopology(o.Topology)
	var problems []error
	if _, err := store.ParseDurability(string(o.Durability)); err != nil {
		problems = append(problems, fmt.Errorf("--durability: %w", err))
	}
	if o.CAFile != "" {
		problems = append(problems, errors.New("--ca-file is not for ZooKeeper: lockbench speaks to it without TLS"))
	}
	if !o.Started() {
		_, err := parseAddress(o.Address)
		problems = append(problems, err)
		if o.Durability != "" {
			problems = append(problems, errors.New("--durability needs a ZooKeeper that lockbench starts itself: it does not change the settings of yours"))
		}
		if o.Pin {
			problems = append(problems, errors.New("--pin needs a ZooKeeper that lockbench starts itself: it does not move a server of yours to other CPUs"))
		}
	}
	return errors.Join(append(problems, topology)...)
}

// Layout is the requested topology.
func (Store) Layout(o store.Options) store.Layout {
	members, err := parseTopology(o.Topology)
	if err == nil && members == 0 && o.Started() {
		members = 1
	}
	return layout{members: members, started: o.Started()}
}

// Open finds or starts the servers, see store.Store.
func (s Store) Open(ctx context.Context, runID string, o store.Options) (store.Server, error) {
	if err := s.Validate(o); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	server := &Server{runID: runID}
	if err := server.open(ctx, o); err != nil {
		return nil, errors.Join(err, server.Close(ctx))
	}
	return server, nil
}

// layout is the number of members, 0 if not known yet, with who started them.
type layout struct {
	members int
	started bool
}

// Unfit says why a strategy cannot run there; "" if it can.
func (layout) Unfit(info strategies.Info) string {
	switch {
	case info.Nodes == 0 || info.Store == name && info.Nodes == 1:
		return ""
	case info.Store != name:
		return "it does not lock on ZooKeeper"
	}
	return fmt.Sprintf("it needs %d stores that know nothing of each other, and an ensemble is one", info.Nodes)
}

// Primaries returns 1: an instance connects to one member, which may be any.
func (layout) Primaries() int { return 1 }

// Impossible returns an error for every fault that is not possible.
func (l layout) Impossible(all []workloads.Fault) []error {
	return ensemble.AllImpossible(all, l.impossible)
}

func (l layout) impossible(f workloads.Fault) error {
	if f.Kind().Place != workloads.OnServers {
		return nil
	}
	return ensemble.Impossible(f, Store{}.Title(), l.members, l.started)
}
