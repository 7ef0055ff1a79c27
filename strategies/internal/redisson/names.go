// Package redisson implements what the locks and the semaphore of Redisson's family have in common: the names of keys
// and channels, and the wait for the message that announces a release.
//
// The formats of keys and messages are Redisson's, so that services in Java and in Go can contend for one lock. The
// scripts are not Redisson's.
package redisson

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/strategies"
)

// Rights returns the ACL rights that a lock needs if its waiters subscribe to a channel and its scripts use the given
// commands.
func Rights(commands ...string) strategies.Rights {
	return strategies.Rights{
		Keys:     []string{"{key}"},
		Channels: []string{"redisson_lock__channel:*{key}"},
		Commands: slices.Concat(commands, []string{
			"publish", "subscribe", "unsubscribe", "ping", "eval", "evalsha",
			"script|load",
		}),
		Cluster: []string{"pubsub|shardnumsub", "spublish", "ssubscribe", "sunsubscribe"},
	}
}

// Prefixed returns the name prefix:{key}, which is in the key's hash slot. For a key that contains a { it returns
// prefix:key.
func Prefixed(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}

// Suffixed returns the name {key}:suffix, which is in the same hash slot as the key. If the key contains a "{", it
// returns key:suffix instead.
func Suffixed(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}

// tag returns the part of a name that Redis Cluster hashes.
func tag(name string) string {
	if _, after, ok := strings.Cut(name, "{"); ok {
		if inside, _, ok := strings.Cut(after, "}"); ok && inside != "" {
			return inside
		}
	}
	return name
}
