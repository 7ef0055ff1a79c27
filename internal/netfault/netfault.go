// Package netfault watches, delays and breaks connections. It has each mechanism once; its users say which one they
// want, and when:
//
//	user                    connections            what it needs of them
//	internal/store          of every client        count
//	internal/engine         of a run               close all
//	internal/engine/wire.go of one fault target    hold while it is paused, close all when it is killed
//	internal/store/NAME     of one instance        list, close all
//	internal/store/network  between two processes  delay, slow down, hold, silence, reset
//	internal/driver         between two processes  pass on
//	tests of locks          of one client          hold, delay, lose, silence, break, count
//
// Conn puts hooks around a connection of this process. Conns are the open connections of one owner, Traffic counts what
// they carry, and a Path is the connections of a client in a test. Proxies stand between two processes.
//
// strategies/gozk watches its connection by itself: by the rule of imports, the packages by which locks reach a store
// use no helper.
package netfault

import (
	"context"
	"net"
)

// Dialer opens a connection.
type Dialer = func(ctx context.Context, network, addr string) (net.Conn, error)
