// Package netfault watches, delays and breaks connections. It implements each mechanism once for all its users:
//
//	user                    connections            what it does with them
//	internal/store          of every client        count
//	internal/engine         of a run               close all
//	internal/engine/wire.go of one fault target    hold while it is paused, close all when it is killed
//	internal/store/NAME     of one instance        list, close all
//	internal/store/network  between two processes  delay, slow down, hold, silence, reset
//	internal/driver         between two processes  pass on
//	tests of locks          of one client          hold, delay, lose, silence, break, count
//
// Conn puts hooks around a connection of this process. Conns holds the open connections of one owner, Traffic counts
// their bytes, and a Path holds the connections of a client in a test. Proxies forward connections between two
// processes.
//
// strategies/gozk has its own connection wrapper, because the packages that connect locks to a store must not import
// this package.
package netfault

import (
	"context"
	"net"
)

// Dialer opens a connection, as net.Dialer.DialContext does.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)
