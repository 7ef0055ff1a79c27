// Package goredis is how locks on Redis reach it: through a client of go-redis, with the
// options it was made from.
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

// Config is what a lock on Redis is opened with.
type Config = strategies.ConfigOf[Node]

// Open makes one instance's Locker of a strategy that locks on Redis.
func Open(v strategies.Variant, c Config) (strategies.Locker, error) { return v.Open(c.Untyped()) }

// Node is one Redis, or a whole cluster. The client belongs to the caller.
type Node struct {
	Client redis.UniversalClient
	// Options made the client, for a peer that dials with its own library; nil for a service's client.
	Options *redis.UniversalOptions
	Files   Files
}

// Files are the PEM files of the options' certificates, for a peer in another language; "" without one.
type Files struct {
	CA        string // trusted in addition to the system's
	Cert, Key string // the client's
}

// NodeOf makes a Node of a client that go-redis has made: of NewClient, NewFailoverClient,
// NewClusterClient, NewFailoverClusterClient or NewUniversalClient.
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
	return Node{}, fmt.Errorf("it needs a *redis.Client or a *redis.ClusterClient, not a %T", client)
}

// Cluster returns the client as one that finds a key's server by its slot; nil if it does not.
func (n Node) Cluster() *redis.ClusterClient {
	cluster, _ := n.Client.(*redis.ClusterClient)
	return cluster
}

// Clustered says whether the client finds a key's server by its slot.
func (n Node) Clustered() bool { return n.Cluster() != nil }

// Addr is a server's address; "" for a cluster and for a client that is not go-redis's own.
func (n Node) Addr() string {
	if client, is := n.Client.(*redis.Client); is {
		return client.Options().Addr
	}
	return ""
}

// Incr adds one to a number.
func (n Node) Incr(ctx context.Context, key string) error { return n.Client.Incr(ctx, key).Err() }

// ReadTimeout is how long the client waits for an answer; 0 or less is without a limit.
func (n Node) ReadTimeout() time.Duration {
	switch c := n.Client.(type) {
	case *redis.Client:
		return c.Options().ReadTimeout
	case *redis.ClusterClient:
		return c.Options().ReadTimeout
	}
	return 0
}

// Dial opens another client to the same servers, with all options of the node's client that
// change does not change; in a cluster it is called for each server. The caller closes the client.
func Dial(n Node, change func(*redis.Options)) (redis.UniversalClient, error) {
	switch c := n.Client.(type) {
	case *redis.Client:
		o := *c.Options()
		none(&o.MaxRetries)
		none(&o.MinRetryBackoff, &o.MaxRetryBackoff, &o.ReadTimeout, &o.WriteTimeout)
		o.PushNotificationProcessor = nil                     // its handlers are those of one client
		o.ClientSideCache, o.ClientSideCacheConfig = nil, nil // what a lock asks must not be answered out of a cache
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
	o.PushNotificationProcessor = nil // its handlers are those of one client
	o.Addrs = slices.Clip(o.Addrs)    // go-redis appends the nodes that it learns of
	// A replica may not have heard yet who owns a lock.
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
				cluster.ReloadState(ctx) // another may have the server's slots by now
			}
			return conn, err
		}
		return open(server)
	}
	cluster = redis.NewClusterClient(&o)
	return cluster
}

// none undoes what go-redis does to options that are given as -1 for none, or timeouts as -2:
// it adds 1, and another client would take 0 for the default.
func none[T ~int | ~int64](options ...*T) {
	for _, option := range options {
		if _, timeout := any(option).(*time.Duration); *option == 0 || timeout && *option == -1 {
			*option--
		}
	}
}
