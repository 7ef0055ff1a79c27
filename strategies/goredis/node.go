// Package goredis is how locks on Redis reach it: through a client of go-redis, with the
// options it was made from.
package goredis

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// Config is what a lock on Redis is opened with.
type Config = strategies.ConfigOf[Node]

// Open makes one instance's Locker of a strategy that locks on Redis.
func Open(v strategies.Variant, c Config) (strategies.Locker, error) { return v.Open(c.Untyped()) }

// Node is one Redis: the client to use and the options it was made from, so
// that a strategy can open its own pool, and a peer can dial with its own
// library. The client belongs to the caller.
type Node struct {
	Client  redis.UniversalClient
	Options *redis.UniversalOptions
}

// Dial opens another client to the same node, with changed options. The caller
// closes it.
func (n Node) Dial(change func(*redis.UniversalOptions)) redis.UniversalClient {
	options := *n.Options
	change(&options)
	return redis.NewUniversalClient(&options)
}

// NodeOf makes a Node of a client that go-redis has made: of NewClient, NewFailoverClient,
// NewClusterClient or NewUniversalClient. A lock's own connections are dialled as the
// client's are, with the same timeouts.
func NodeOf(client redis.UniversalClient) (Node, error) {
	switch c := client.(type) {
	case nil:
		return Node{}, errors.New("the Redis client is nil")
	case *redis.Client:
		options := universalOptions(c.Options())
		options.Addrs = []string{c.Options().Addr}
		return Node{Client: client, Options: options}, nil
	case *redis.ClusterClient:
		options := universalOptions(c.Options())
		options.IsClusterMode = true
		return Node{Client: client, Options: options}, nil
	}
	return Node{}, fmt.Errorf("it needs a *redis.Client or a *redis.ClusterClient, not a %T", client)
}

// universalOptions copies the options of the same name and type.
func universalOptions(from any) *redis.UniversalOptions {
	options := new(redis.UniversalOptions)
	source, target := reflect.ValueOf(from).Elem(), reflect.ValueOf(options).Elem()
	for _, field := range reflect.VisibleFields(target.Type()) {
		if f := source.FieldByName(field.Name); f.IsValid() && f.Type() == field.Type {
			target.FieldByIndex(field.Index).Set(f)
		}
	}
	// go-redis writes defaults into a client's options. It writes "none", which is given as
	// -1, as 0; another client would take that for the default.
	none(&options.MaxRetries)
	none(&options.MaxRedirects)
	none(&options.MinRetryBackoff)
	none(&options.MaxRetryBackoff)
	for _, timeout := range []*time.Duration{&options.ReadTimeout, &options.WriteTimeout} {
		if *timeout == -1 { // given as -2: no deadlines are set at all
			*timeout = -2
		}
		none(timeout)
	}
	options.MaxConcurrentDials = 0 // as many as the pool has
	// What a lock sends must not be answered out of a cache.
	options.ClientSideCache, options.ClientSideCacheConfig = nil, nil
	return options
}

// none undoes what go-redis does to an option that is given as -1.
func none[T ~int | ~int64](option *T) {
	if *option == 0 {
		*option = -1
	}
}
