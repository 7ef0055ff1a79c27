package redisson

import (
	"slices"

	"github.com/lockbench/lockbench/strategies"
)

// Rights returns the rights for a lock that parks on a channel and whose scripts use those
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

// SpinRights returns the rights for an RSpinLock, which has no channel.
func SpinRights() strategies.Rights {
	return strategies.Rights{
		Keys:     []string{"{key}"},
		Commands: append(slices.Clone(hash), "eval", "evalsha", "script|load"),
	}
}

// hash are the commands on the hash that is the lock.
var hash = []string{"exists", "hexists", "hincrby", "pexpire", "pttl", "del"}

// LockRights returns the rights for an RLock.
func LockRights(commands ...string) strategies.Rights {
	return Rights(slices.Concat(hash, commands)...)
}
