package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/workloads"
)

// impossible returns why a fault is not possible, as text that follows its name; nil if it is.
func (l layout) impossible(f workloads.Fault) error {
	switch f.Name {
	case workloads.Kill, workloads.Pause:
	case workloads.NodeDown, workloads.NodeHang:
		if l.members == 1 {
			return errors.New("needs several members: --topology etcd:3")
		}
	case workloads.CrashBetween:
		return errors.New("needs to read what is sent, and to etcd that is compressed")
	default:
		if f.Kind().Place == workloads.OnServers {
			return errors.New("is of Redis, and not of etcd")
		}
		return nil
	}
	switch last := f.Node + max(f.N, 1) - 1; {
	case !l.started:
		return errors.New("needs an etcd that lockbench starts itself")
	case last >= max(l.members, 1):
		return fmt.Errorf("there is no member %d, of %d from 0 on", last, l.members)
	case f.Name == workloads.Kill && f.Data == workloads.DataLose && l.members > 1:
		return errors.New("cannot bring a member back without its data, which the others count on: data=keep")
	}
	return nil
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
	hit, err := i.victims(ctx, f)
	if err != nil {
		return store.Action{}, fmt.Errorf("%s: %w", f.Name, err)
	}
	b := blow{i.server, hit}
	switch f.Name {
	case workloads.Kill, workloads.NodeDown:
		lose := f.Name == workloads.Kill && f.Data == workloads.DataLose
		return b.of(
			func(ctx context.Context, m *member) error { return m.kill(ctx) },
			func(ctx context.Context, m *member) error { return m.again(ctx, lose) }, lose), nil
	case workloads.Pause, workloads.NodeHang:
		return b.of(
			func(ctx context.Context, m *member) error { return m.own.Pause(ctx) },
			func(ctx context.Context, m *member) error { return m.own.Resume(ctx) }, false), nil
	}
	return store.Action{}, fmt.Errorf("there is no fault %s of etcd", f.Name)
}

// victims returns the members to hit; the leader has place 0.
func (i *injector) victims(ctx context.Context, f workloads.Fault) ([]*member, error) {
	leader, err := i.server.leader(ctx, nil)
	if err != nil {
		return nil, err
	}
	places := []*member{leader}
	for _, m := range i.server.members {
		if m != leader {
			places = append(places, m)
		}
	}
	return places[f.Node : f.Node+max(f.N, 1)], nil
}

// leader returns the leading member, according to a member that is not away.
func (s *Server) leader(ctx context.Context, away []*member) (*member, error) {
	for {
		for _, m := range s.members {
			if slices.Contains(away, m) {
				continue
			}
			attempt, cancel := context.WithTimeout(ctx, time.Second)
			status, err := m.client.Status(attempt, m.endpoint)
			cancel()
			if err != nil {
				continue
			}
			for _, other := range s.members {
				if other.id == status.Leader && !slices.Contains(away, other) {
					return other, nil
				}
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("there is no leader: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// blow hits members.
type blow struct {
	server *Server
	hit    []*member
}

// of makes an Action. If enough members remain, Hit returns when they have a leader.
func (b blow) of(hit, end func(context.Context, *member) error, loses bool) store.Action {
	outage := store.Throughout
	if 2*(len(b.server.members)-len(b.hit)) > len(b.server.members) {
		outage = store.Briefly
	}
	return store.Action{
		Hit: func(ctx context.Context) error {
			err := b.each(ctx, hit)
			if err == nil && outage == store.Briefly {
				ctx, cancel := context.WithTimeout(ctx, launch.StartTimeout)
				defer cancel()
				_, err = b.server.leader(ctx, b.hit)
			}
			return err
		},
		End:    func(ctx context.Context) error { return b.each(context.WithoutCancel(ctx), end) },
		Outage: outage, Loses: loses,
	}
}

// each calls do concurrently for all hit members.
func (b blow) each(ctx context.Context, do func(context.Context, *member) error) error {
	wrong := make([]error, len(b.hit))
	var all sync.WaitGroup
	for n, m := range b.hit {
		all.Go(func() {
			if err := do(ctx, m); err != nil {
				wrong[n] = fmt.Errorf("%s: %w", m.endpoint, err)
			}
		})
	}
	all.Wait()
	return errors.Join(wrong...)
}

// kill kills a member that lockbench started.
func (m *member) kill(ctx context.Context) error {
	m.counters.ending(m.own.CPU())
	return m.own.Kill(ctx)
}

// again starts it with its data, or without.
func (m *member) again(ctx context.Context, lose bool) error {
	if lose {
		return m.own.Anew(ctx)
	}
	return m.own.Again(ctx)
}
