// Package netfault watches, delays and breaks connections. It has each mechanism once; its users say which one they
// want, and when:
//
//	user                   connections            what it needs of them
//	internal/store         of every client        count
//	internal/engine        of a run               close all
//	  wire.go              of one fault target    hold, while it is paused; close all, when it is killed
//	internal/store/NAME    of one instance        list, or close all
//	internal/store/network between two processes  delay, slow down, hold, reset, silence
//	internal/driver        between two processes  pass on
//	tests of locks         of one client          hold, delay, lose, silence, break, count
//
// Conn puts hooks around a connection of this process. Conns are the open connections of one owner, Traffic counts what
// they carry. Proxies stand between two processes.
package netfault

import (
	"context"
	"net"
)

// Dialer opens a connection.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)
