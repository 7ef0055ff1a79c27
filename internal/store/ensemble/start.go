package ensemble

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/launch"
)

// Start starts n members at the same time: none is ready before most of them run. begin starts a
// member by its place; ports has perMember free ports for each member. If another process takes one of
// them meanwhile, which taken recognises, Start tries again with other ports.
func Start(ctx context.Context, n, perMember int, taken func(error) bool, begin Begin) ([]launch.Started, error) {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		started, err := startOnce(ctx, n, perMember, begin)
		if err == nil || attempt == attempts || ctx.Err() != nil || !taken(err) {
			return started, err
		}
	}
}

// Begin starts the member at a place. With an error, what it returns is not used.
type Begin func(ctx context.Context, place int, ports [][]int) (launch.Started, error)

func startOnce(ctx context.Context, n, perMember int, begin Begin) ([]launch.Started, error) {
	free, err := launch.FreePorts(n * perMember)
	if err != nil {
		return nil, err
	}
	ports := slices.Collect(slices.Chunk(free, perMember))
	started, problems := make([]launch.Started, n), make([]error, n)
	// If one member cannot start, the others need not wait for it.
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for place := range n {
		all.Go(func() {
			if started[place], problems[place] = begin(within, place, ports); problems[place] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	err = errors.Join(causes(ctx, problems)...)
	if err == nil {
		return started, nil
	}
	for place, one := range started {
		if problems[place] == nil {
			err = errors.Join(err, one.Close(context.WithoutCancel(ctx)))
		}
	}
	return nil, err
}

// causes leaves out the errors of members whose start was given up because of another's.
func causes(ctx context.Context, problems []error) []error {
	givenUp := func(err error) bool { return err == nil || errors.Is(err, context.Canceled) }
	if ctx.Err() != nil || !slices.ContainsFunc(problems, func(err error) bool { return !givenUp(err) }) {
		return problems
	}
	return slices.DeleteFunc(slices.Clone(problems), givenUp)
}
