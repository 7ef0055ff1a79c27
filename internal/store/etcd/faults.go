package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/workloads"
)

// impossible returns why a fault is not possible, as text that follows its name; nil if it is.
func (l layout) impossible(f workloads.Fault) error {
	switch {
	case f.Name == workloads.CrashBetween:
		return errors.New("needs to read what is sent, and to etcd that is compressed")
	case f.Kind().Place != workloads.OnServers:
		return nil
	}
	return ensemble.Impossible(f, Name, l.members, l.started)
}

// injector injects the faults of one run.
type injector struct {
	server  *Server
	network *network.Network
}

func newInjector(s *Server, all []workloads.Fault) *injector { return &injector{s, network.New(all)} }

// Detour uses proxies if there are faults of the network.
func (i *injector) Detour(instance int) store.Through { return i.network.Detour(instance) }

// Close closes the proxies.
func (i *injector) Close() { i.network.Close() }

// Prepare does what must precede a fault, see store.Faults.
func (i *injector) Prepare(ctx context.Context, f workloads.Fault, _ store.RunMarks) (store.Action, error) {
	if f.Kind().Place == workloads.OnNetwork {
		return i.network.Prepare(f)
	}
	if err := i.server.impossible(f); err != nil {
		return store.Action{}, fmt.Errorf("%s %w", f.Name, err)
	}
	members := ensemble.Faults{Leader: i.server.leader}
	for _, m := range i.server.members {
		members.Members = append(members.Members, m.own)
	}
	action, err := members.Prepare(ctx, f)
	if err != nil {
		return store.Action{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	return action, nil
}

// leader returns the leader that is not away, according to a member that is not away; nil without one.
func (s *Server) leader(ctx context.Context, away []launch.Started) launch.Started {
	for _, m := range s.members {
		if slices.Contains(away, m.own) {
			continue
		}
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		status, err := m.client.Status(attempt, m.endpoint)
		cancel()
		if err != nil {
			continue
		}
		for _, other := range s.members {
			if other.id == status.Leader && !slices.Contains(away, other.own) {
				return other.own
			}
		}
	}
	return nil
}
