package goredis

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// smallBuffer is for a connection with short messages: there may be ten thousand of them.
const smallBuffer = 4 << 10

// DialSubscribers returns another client of the same servers, for subscriptions alone.
func DialSubscribers(n Node) (redis.UniversalClient, error) {
	return Dial(n, func(o *redis.Options) {
		o.MinIdleConns = 0 // only subscriptions are opened
		o.ReadBufferSize, o.WriteBufferSize = smallBuffer, smallBuffer
	})
}

// DialBlocking returns another client of the same server, with one connection, for commands that block. Only the
// context of a call ends it. It learns the id of each connection that it opens.
func DialBlocking(n Node, learn func(id int64)) (redis.UniversalClient, error) {
	return Dial(n, func(o *redis.Options) {
		o.PoolSize, o.MinIdleConns, o.PipelinePoolSize = 1, 0, -1
		o.ReadBufferSize, o.WriteBufferSize = smallBuffer, smallBuffer
		o.MaxRetries = -1 // a BLPOP sent again may have popped already
		o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = -1, -1, true
		o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, -1
		o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
		connected := o.OnConnect
		o.OnConnect = func(ctx context.Context, conn *redis.Conn) error {
			id, err := conn.ClientID(ctx).Result()
			if err != nil {
				return fmt.Errorf("ask for the connection's id: %w", err)
			}
			learn(id)
			if connected != nil {
				return connected(ctx, conn)
			}
			return nil
		}
	})
}

// URL returns the address of the server that a node's options connect to, as another program takes it, and the name of
// their connections; "" if the options are not known or connect to several.
func (n Node) URL() (address, name string) {
	o := n.Options
	if o == nil || len(o.Addrs) != 1 || o.IsClusterMode {
		return "", ""
	}
	u := url.URL{Scheme: "redis", Host: o.Addrs[0]}
	if o.TLSConfig != nil {
		u.Scheme = "rediss"
	}
	switch {
	case o.Password != "":
		u.User = url.UserPassword(o.Username, o.Password)
	case o.Username != "":
		u.User = url.User(o.Username)
	}
	if o.DB != 0 {
		u.Path = "/" + strconv.Itoa(o.DB)
	}
	return u.String(), o.ClientName
}

// DialAs dials the server of a node as its options' Dialer does.
func (n Node) DialAs(ctx context.Context) (net.Conn, error) {
	o := n.Options
	return o.Dialer(ctx, "tcp", o.Addrs[0])
}

// At returns a node with another address in its options.
func (n Node) At(address string) Node {
	o := *n.Options
	o.Addrs = []string{address}
	n.Options = &o
	return n
}
