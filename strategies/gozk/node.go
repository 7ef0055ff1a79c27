// Package gozk connects locks with ZooKeeper, by sessions of go-zookeeper. Unlike calls of the library itself, calls of
// these sessions return when their contexts end. An expired session is never silently replaced by a new session.
package gozk

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
)

// Config is the configuration of a lock on ZooKeeper. The lock opens its own session on the node.
type Config = strategies.ConfigOf[Node]

// Node is one ZooKeeper service: a single server or an ensemble.
type Node struct {
	// Servers are the servers as host:port; a session is connected to one of them at a time.
	Servers []string
	// Root is the path of the parent node of all locks, such as /locks; it must exist. "" means the root of the tree.
	Root string
	// Auth is user:password of the digest scheme; "" means no user. Only that user may use the nodes that a session with
	// this Auth creates.
	Auth string
	// Dial opens connections; nil means the dialer of package net.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Path returns the path of the node that serves as the queue of the lock with the given key. The children of that node
// are the waiters and the holder.
func (n Node) Path(key string) string { return n.Root + "/" + Name(key) }

// acl returns the ACL of created nodes: all rights for the user in Auth or, if Auth is empty, for all users.
func (n Node) acl() []zk.ACL {
	if n.Auth != "" {
		return zk.AuthACL(zk.PermAll)
	}
	return zk.WorldACL(zk.PermAll)
}

// Name returns the name of the node for a key. Any string is a key, but ZooKeeper accepts only some names, so
// everything except printable ASCII is percent-encoded.
func Name(key string) string {
	if key == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		first := i == 0 && (c == '.' || key == "zookeeper") // ., .. and the name that ZooKeeper reserves
		if c < ' ' || c > '~' || c == '/' || c == '%' || first {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Key returns the key for which Name returns name. It returns false if there is no such key.
func Key(name string) (string, bool) {
	if name == "%" {
		return "", true
	}
	key, err := url.PathUnescape(name)
	return key, err == nil && Name(key) == name
}
