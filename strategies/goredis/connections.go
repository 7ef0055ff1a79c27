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

// What is here does for other packages what needs the types of go-redis's clients and options, so that those packages
// need not compile them; see Client.

// smallBuffer is for a connection with short messages: there may be ten thousand of them.
const smallBuffer = 4 << 10

// Subscription is a *redis.PubSub.
type Subscription interface {
	Subscribe(ctx context.Context, channels ...string) error
	SSubscribe(ctx context.Context, channels ...string) error
	Unsubscribe(ctx context.Context, channels ...string) error
	SUnsubscribe(ctx context.Context, channels ...string) error
	Ping(ctx context.Context, payload ...string) error
	Receive(ctx context.Context) (any, error)
	Close() error
}

// Subscribe returns a connection for subscriptions, which is not opened yet. The client is one that CheckSubscribers
// accepts.
//
//go:noinline // as Clustered
func Subscribe(ctx context.Context, client Client) Subscription {
	return client.(redis.UniversalClient).Subscribe(ctx)
}

// DialSubscribers returns another client of the same servers, to be given to Subscribe alone.
//
//go:noinline // as Clustered
func DialSubscribers(n Node) (Client, error) {
	return Dial(n, func(o *redis.Options) {
		o.MinIdleConns = 0 // only subscriptions are opened
		o.ReadBufferSize, o.WriteBufferSize = smallBuffer, smallBuffer
	})
}

// DialBlocking returns another client of the same server, with one connection, for commands that block. Only the
// context of a call ends it. It learns the id of each connection that it opens.
//
//go:noinline // as Clustered
func DialBlocking(n Node, learn func(id int64)) (Client, error) {
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

// MasterOf returns the client of the server of a cluster that has a key.
//
//go:noinline // as Clustered
func MasterOf(ctx context.Context, cluster Client, key string) (Client, error) {
	server, err := cluster.(*redis.ClusterClient).MasterForKey(ctx, key)
	if err != nil {
		return nil, err
	}
	return server, nil
}

// ReloadState has a client look at its cluster again.
//
//go:noinline // as Clustered
func ReloadState(ctx context.Context, cluster Client) {
	cluster.(*redis.ClusterClient).ReloadState(ctx)
}

// URL returns the address of the server that a node's options connect to, as another program takes it, and the name of
// their connections; "" if the options are not known or connect to several.
//
//go:noinline // as Clustered
func (n Node) URL() (address, name string) {
	o := OptionsOf(n)
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
//
//go:noinline // as Clustered
func (n Node) DialAs(ctx context.Context) (net.Conn, error) {
	o := OptionsOf(n)
	return o.Dialer(ctx, "tcp", o.Addrs[0])
}

// At returns a node with another address in its options.
//
//go:noinline // as Clustered
func (n Node) At(address string) Node {
	o := *OptionsOf(n)
	o.Addrs = []string{address}
	n.Options = &o
	return n
}
