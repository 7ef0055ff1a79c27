package servers

import (
	"context"
	"errors"

	"github.com/lockbench/lockbench/internal/store"
)

// Sweep removes the keys that a killed lockbench left on the server that the options name. It does
// not touch keys of a live run, or if it cannot know which runs are alive.
func Sweep(ctx context.Context, options Options) (store.Swept, error) {
	swept := store.Swept{Kind: "keys"}
	s := &Server{dials: make(chan struct{}, dialsAtOnce)}
	err := s.open(ctx, Options{Address: options.Address, CAFile: options.CAFile, RunID: options.RunID}, Topology{})
	if err == nil {
		swept = s.sweep(ctx, 0)
	}
	return swept, errors.Join(err, ctx.Err(), s.Close(ctx))
}
