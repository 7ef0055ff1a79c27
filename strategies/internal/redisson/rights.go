package redisson

import (
	"slices"

	"github.com/lockbench/lockbench/strategies"
)

// Rights are those of every lock that parks on a channel, with the commands of its own
// scripts.
func Rights(commands ...string) strategies.Rights {
	return strategies.Rights{
		Keys:     []string{"{key}"},
		Channels: []string{"redisson_lock__channel:*{key}"},
		Commands: slices.Concat(commands, []string{"publish", "subscribe", "unsubscribe", "ping", "eval", "evalsha", "script|load"}),
		Cluster:  []string{"pubsub|shardnumsub", "spublish", "ssubscribe", "sunsubscribe"},
	}
}

// SpinRights are those of an RSpinLock, which has no channel.
func SpinRights() strategies.Rights {
	return strategies.Rights{
		Keys:     []string{"{key}"},
		Commands: append(slices.Clone(hash), "eval", "evalsha", "script|load"),
	}
}

// hash are the commands on the hash that is the lock.
var hash = []string{"exists", "hexists", "hincrby", "pexpire", "pttl", "del"}

// LockRights are those of an RLock.
func LockRights(commands ...string) strategies.Rights {
	return Rights(slices.Concat(hash, commands)...)
}
