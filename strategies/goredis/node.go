// Package goredis connects locks with Redis, through a go-redis client and the options of this client.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// Config is the configuration of a lock on Redis, with go-redis clients as its nodes.
type Config = strategies.ConfigOf[Node]

// Open opens one instance's Locker of a strategy that locks on Redis.
func Open(v strategies.Variant, c Config) (strategies.Locker, error) { return v.Open(c.Untyped()) }

// Node is one Redis, or a whole cluster. The client belongs to the caller.
type Node struct {
	Client redis.UniversalClient
	// Options are the options from which the client was created, for a peer library that opens its own connections. They
	// are nil for a service's client.
	Options *redis.UniversalOptions
	Files   Files
}

// Files are the PEM files of the options' certificates, for a peer in another language; "" if there is no such file.
type Files struct {
	CA        string // trusted in addition to the system's
	Cert, Key string // the client's
}

// NodeOf makes a Node of a go-redis client: the result of NewClient, NewFailoverClient, NewClusterClient,
// NewFailoverClusterClient or NewUniversalClient. It returns an error for nil and for clients of other types.
func NodeOf(client redis.UniversalClient) (Node, error) {
	none, ours := client == nil, true
	switch c := client.(type) {
	case *redis.Client:
		none = c == nil
	case *redis.ClusterClient:
		none = c == nil
	default:
		ours = false
	}
	switch {
	case none:
		return Node{}, errors.New("the Redis client is nil")
	case ours:
		return Node{Client: client}, nil
	}
	return Node{}, fmt.Errorf("the client must be a *redis.Client or a *redis.ClusterClient, not a %T", client)
}

// Cluster returns the client if it is a cluster client, which finds a key's server by its hash slot; otherwise nil.
func (n Node) Cluster() *redis.ClusterClient {
	cluster, _ := n.Client.(*redis.ClusterClient)
	return cluster
}

// Clustered reports whether the client finds a key's server by its hash slot.
func (n Node) Clustered() bool { return n.Cluster() != nil }

// Addr returns the server's address; "" for a cluster and for a client that is not a *redis.Client.
func (n Node) Addr() string {
	if client, is := n.Client.(*redis.Client); is {
		return client.Options().Addr
	}
	return ""
}

// Incr adds one to the number at a key.
func (n Node) Incr(ctx context.Context, key string) error { return n.Client.Incr(ctx, key).Err() }

// ReadTimeout returns how long the client waits for a reply; 0 or less means no limit.
func (n Node) ReadTimeout() time.Duration {
	switch c := n.Client.(type) {
	case *redis.Client:
		return c.Options().ReadTimeout
	case *redis.ClusterClient:
		return c.Options().ReadTimeout
	}
	return 0
}

// Dial opens another client of the same servers with the options of the node's client after change has edited them.
// In a cluster, change is called for the options of each server. The caller closes the client.
func Dial(n Node, change func(*redis.Options)) (redis.UniversalClient, error) {
	switch c := n.Client.(type) {
	case *redis.Client:
		o := *c.Options()
		none(&o.MaxRetries)
		none(&o.MinRetryBackoff, &o.MaxRetryBackoff, &o.ReadTimeout, &o.WriteTimeout)
		o.PushNotificationProcessor = nil                     // its handlers belong to one client
		o.ClientSideCache, o.ClientSideCacheConfig = nil, nil // a lock must not read from a cache
		change(&o)
		return redis.NewClient(&o), nil
	case *redis.ClusterClient:
		return dialCluster(*c.Options(), change), nil
	}
	_, err := NodeOf(n.Client)
	return nil, err
}

func dialCluster(o redis.ClusterOptions, change func(*redis.Options)) *redis.ClusterClient {
	none(&o.MaxRedirects)
	none(&o.MinRetryBackoff, &o.MaxRetryBackoff, &o.ReadTimeout, &o.WriteTimeout)
	o.PushNotificationProcessor = nil // its handlers belong to one client
	o.Addrs = slices.Clip(o.Addrs)    // go-redis appends the nodes that it learns of
	// Commands must not go to a replica, which may not have received the lock's last write yet.
	o.ReadOnly, o.RouteByLatency, o.RouteRandomly = false, false, false
	var cluster *redis.ClusterClient
	open := o.NewClient
	o.NewClient = func(server *redis.Options) *redis.Client {
		change(server)
		dial := server.Dialer
		if dial == nil {
			dial = redis.NewDialer(server)
		}
		server.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			if err != nil {
				cluster.ReloadState(ctx) // another server may have taken over the slots
			}
			return conn, err
		}
		return open(server)
	}
	cluster = redis.NewClusterClient(&o)
	return cluster
}

// none restores options whose original value means "none": -1, and for timeouts also -2. go-redis adds 1 to such a
// value in its copy of the options. A second client with this copy would replace the resulting 0 with the default.
func none[T ~int | ~int64](options ...*T) {
	for _, option := range options {
		if _, timeout := any(option).(*time.Duration); *option == 0 || timeout && *option == -1 {
			*option--
		}
	}
}
