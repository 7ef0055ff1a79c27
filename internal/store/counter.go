package store

import (
	"context"
	"errors"
)

// Counter is a number that a lock's holders read and write back one higher.
type Counter interface {
	// Read returns ErrStale if the counter refuses the token.
	Read(ctx context.Context) (int64, error)
	// Write returns ErrStale if the counter refuses the token.
	Write(ctx context.Context, n int64) error
}

// ErrStale reports a token that is older than one the counter has seen.
var ErrStale = errors.New("the fencing token is stale")
