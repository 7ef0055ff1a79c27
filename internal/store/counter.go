package store

import (
	"context"
	"errors"
)

// Counter is a number that holders of a lock read, and write back one higher.
type Counter interface {
	// Read returns ErrStale where the counter refuses the token.
	Read(ctx context.Context) (int64, error)
	// Write returns ErrStale where the counter refuses the token.
	Write(ctx context.Context, n int64) error
}

// ErrStale is what a counter says to a token older than one it has seen.
var ErrStale = errors.New("the fencing token is stale")
