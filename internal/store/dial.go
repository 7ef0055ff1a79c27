package store

import (
	"context"
	"net"
)

// Dialer opens a connection to a store.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// Through makes a Dialer of another whose connections take a detour: one that counts
// what they carry, or breaks or delays them on purpose.
type Through = func(Dialer) Dialer
