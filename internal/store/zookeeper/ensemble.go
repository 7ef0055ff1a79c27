package zookeeper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/lockbench/lockbench/internal/launch"
)

// launcher starts a member on a port from pick.
type launcher func(ctx context.Context, m member, pick launch.Picker) (launch.Started, error)

// start starts this many servers; several form one ensemble.
func start(ctx context.Context, members int, m member, begin launcher) ([]launch.Started, error) {
	if members == 1 {
		m.id = 1
		one, err := begin(ctx, m, launch.FreePort)
		if err != nil {
			return nil, err
		}
		return []launch.Started{one}, nil
	}
	const attempts = 5 // another process may take one of the ports meanwhile
	for attempt := 1; ; attempt++ {
		started, err := startEnsemble(ctx, members, m, begin)
		if err == nil || attempt == attempts || ctx.Err() != nil || !strings.Contains(err.Error(), "Address already in use") {
			return started, err
		}
	}
}

func startEnsemble(ctx context.Context, members int, m member, begin launcher) ([]launch.Started, error) {
	ports, err := launch.FreePorts(3 * members)
	if err != nil {
		return nil, err
	}
	for own := range slices.Chunk(ports, 3) {
		m.ensemble = append(m.ensemble, ensemble{client: own[0], quorum: own[1], election: own[2]})
	}
	started := make([]launch.Started, members)
	problems := make([]error, members)
	// No member is ready without the others: if one cannot start, do not wait for the rest.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for i := range members {
		all.Go(func() {
			one := m
			one.id = i + 1
			started[i], problems[i] = begin(ctx, one, func() (int, error) { return m.ensemble[i].client, nil })
			if problems[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	err = errors.Join(problems...)
	if err == nil {
		return started, nil
	}
	for i, o := range started {
		if problems[i] == nil {
			err = errors.Join(err, o.Close(context.WithoutCancel(ctx)))
		}
	}
	return nil, err
}
