// Package goetcd is how locks on etcd reach it: through etcd's own client, with the
// configuration it was made from.
package goetcd

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/strategies"
)

// Config is what a lock on etcd is opened with.
type Config = strategies.ConfigOf[Node]

// Node is one etcd, of one or several members. The client belongs to the caller.
type Node struct {
	Client *clientv3.Client
	Config clientv3.Config // to dial another client with
}
