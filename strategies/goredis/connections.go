package goredis

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// smallBuffer is the buffer size in bytes for connections with short messages. A process may have ten thousand of
// these connections.
const smallBuffer = 4 << 10

// DialSubscribers returns another client of the same servers, for subscriptions only.
func DialSubscribers(n Node) (redis.UniversalClient, error) {
	return Dial(n, func(o *redis.Options) {
		o.MinIdleConns = 0 // only subscriptions are opened
		o.ReadBufferSize, o.WriteBufferSize = smallBuffer, smallBuffer
	})
}

// DialBlocking returns another client of the same server, with one connection, for commands that block. A call on this
// client ends only when a reply arrives, the connection breaks or the call's context ends. For each connection that the
// client opens, it calls learn with the connection's id.
func DialBlocking(n Node, learn func(id int64)) (redis.UniversalClient, error) {
	return Dial(n, func(o *redis.Options) {
		o.PoolSize, o.MinIdleConns, o.PipelinePoolSize = 1, 0, -1
		o.ReadBufferSize, o.WriteBufferSize = smallBuffer, smallBuffer
		o.MaxRetries = -1 // the first try of a BLPOP may have popped an element that a second try would not return
		o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = -1, -1, true
		o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, -1
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		connected := o.OnConnect
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
			id, err := conn.ClientID(ctx).Result()
			if err != nil {
				return fmt.Errorf("query the connection's id: %w", err)
			}
			learn(id)
			if connected != nil {
				return connected(ctx, conn)
			}
			return nil
		}
	})
}

// Reach describes how another program, such as a driver in Java, connects to a server.
type Reach struct {
	// URL is redis://, rediss:// or unix://, with user, password and database. In user and password everything but
	// letters, digits and -._~ is percent-encoded: some libraries decode a + as a space.
	URL        string
	ClientName string
	Files           // for rediss://
	SkipVerify bool // for rediss://: accept any certificate of the server
}

// Reach describes how another program connects with the node's options. It returns false if the options are not known,
// belong to a cluster, or name several servers.
func (n Node) Reach() (Reach, bool) {
	o := n.Options
	if o == nil || len(o.Addrs) != 1 || o.IsClusterMode {
		return Reach{}, false
	}
	scheme, place, db := "redis://", o.Addrs[0], "/"
	r := Reach{ClientName: o.ClientName}
	switch {
	case isSocket(place):
		scheme, place, db = "unix://", (&url.URL{Path: place}).EscapedPath(), "?db="
	case o.TLSConfig != nil:
		scheme, r.Files, r.SkipVerify = "rediss://", n.Files, o.TLSConfig.InsecureSkipVerify
	}
	user := ""
	if o.Password != "" { // go-redis sends no user without one
		user = encoded(o.Username) + ":" + encoded(o.Password) + "@"
	}
	r.URL = scheme + user + place
	if o.DB != 0 {
		r.URL += db + strconv.Itoa(o.DB)
	}
	return r, true
}

func encoded(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// isSocket reports whether go-redis treats a server's address as the path of a unix socket.
func isSocket(address string) bool { return strings.HasPrefix(address, "/") }

// DialAs dials the server of a node with the Dialer of its options.
func (n Node) DialAs(ctx context.Context) (net.Conn, error) {
	o, network := n.Options, "tcp"
	if isSocket(o.Addrs[0]) {
		network = "unix"
	}
	return o.Dialer(ctx, network, o.Addrs[0])
}

// At returns a copy of the node whose options contain address, the address of a proxy. Connections to the proxy use TLS
// if the connections of DialAs use TLS.
func (n Node) At(address string) Node {
	o := *n.Options
	o.Addrs, o.TLSConfig = []string{address}, nil
	n.Options = &o
	return n
}
