package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lockbench/lockbench/internal/launch"
)

// own is a server that lockbench started.
type own struct {
	*launch.Process
	member member
}

// Lose starts it again without its data.
func (o own) lose(ctx context.Context) error {
	if err := o.Kill(ctx); err != nil {
		return err
	}
	if err := o.member.empty(o.Process); err != nil {
		return fmt.Errorf("remove the data of ZooKeeper: %w", err)
	}
	return o.Again(ctx)
}

// start starts so many servers, which make one ensemble if there are several.
func start(ctx context.Context, runID string, members int, m member) ([]own, error) {
	if members == 1 {
		m.id = 1
		p, err := launch.Start(ctx, m.program(), launch.FreePort, runID)
		if err != nil {
			return nil, err
		}
		return []own{{p, m}}, nil
	}
	const attempts = 5 // somebody else may take one of the ports meanwhile
	for attempt := 1; ; attempt++ {
		started, err := startEnsemble(ctx, runID, members, m)
		if err == nil || attempt == attempts || ctx.Err() != nil || !strings.Contains(err.Error(), "Address already in use") {
			return started, err
		}
	}
}

func startEnsemble(ctx context.Context, runID string, members int, m member) ([]own, error) {
	for range members {
		var ports ensemble
		for _, port := range []*int{&ports.client, &ports.quorum, &ports.election} {
			var err error
			if *port, err = launch.FreePort(); err != nil {
				return nil, err
			}
		}
		m.ensemble = append(m.ensemble, ports)
	}
	started := make([]own, members)
	faults := make([]error, members)
	// None is ready without the others: if one cannot start they need not be waited for.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for i := range members {
		all.Go(func() {
			one := m
			one.id = i + 1
			program := one.program()
			program.Taken = nil
			p, err := launch.Start(ctx, program, func() (int, error) { return m.ensemble[i].client, nil }, runID)
			started[i], faults[i] = own{p, one}, err
			if err != nil {
				cancel()
			}
		})
	}
	all.Wait()
	err := errors.Join(faults...)
	if err == nil {
		return started, nil
	}
	for i, o := range started {
		if faults[i] == nil {
			err = errors.Join(err, o.Close(ctx))
		}
	}
	return nil, err
}
