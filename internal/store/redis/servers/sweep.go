package servers

import (
	"context"
	"errors"

	"github.com/lockbench/lockbench/internal/store"
)

// Sweep removes the keys that a lockbench that was killed left on the server that the
// options name. It leaves alone what belongs to a lockbench that still runs, or that cannot
// be told.
func Sweep(ctx context.Context, options Options) (store.Swept, error) {
	swept := store.Swept{Kind: "keys"}
	s := &Server{dials: make(chan struct{}, dialsAtOnce)}
	err := s.open(ctx, Options{Address: options.Address, CAFile: options.CAFile, RunID: options.RunID}, Topology{})
	if err == nil {
		swept = s.sweep(ctx, 0)
	}
	return swept, errors.Join(err, ctx.Err(), s.Close(ctx))
}
