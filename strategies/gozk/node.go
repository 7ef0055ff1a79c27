// Package gozk connects locks with ZooKeeper, by sessions of go-zookeeper. Unlike those of the library itself, their
// calls end with their contexts, and an expired session is never replaced by a new one without notice.
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

// Config is the configuration of a lock on ZooKeeper.
type Config = strategies.ConfigOf[Node]

// Node is one ZooKeeper, a server or an ensemble.
type Node struct {
	// Servers are the servers as host:port; a session is connected to one of them at a time.
	Servers []string
	// Root is the path of the parent node of all locks, such as /locks; it must exist. "" means the root of the tree.
	Root string
	// Auth is user:password of the digest scheme; "" means no user. Only that user may use
	// the nodes that are made with it.
	Auth string
	// Dial opens connections; nil means the net package's.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Path returns the path of the node for a key.
func (n Node) Path(key string) string { return n.Root + "/" + Name(key) }

// acl returns the ACL of created nodes: all rights for the user in Auth or, without one, for everyone.
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

// Key returns the key whose node has that name. It returns false for a name that Name never returns.
func Key(name string) (string, bool) {
	if name == "%" {
		return "", true
	}
	key, err := url.PathUnescape(name)
	return key, err == nil && Name(key) == name
}
