// Package gozk is how locks on ZooKeeper reach it: through sessions of go-zookeeper.
package gozk

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
)

// Config is what a lock on ZooKeeper is opened with.
type Config = strategies.ConfigOf[Node]

// Node is one ZooKeeper, be it of several servers.
type Node struct {
	// Connect opens a session that the server ends when it has heard nothing of it for
	// so long. The caller closes it.
	Connect func(timeout time.Duration) (*zk.Conn, <-chan zk.Event, error)
}
