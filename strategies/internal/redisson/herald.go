package redisson

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
)

// These are the modes of publishing a release on a cluster. They correspond to Redisson's ShardedSubscriptionMode.
const (
	ShardedAuto = "auto" // by SPUBLISH if the servers support it, otherwise by PUBLISH
	ShardedOn   = "on"   // by SPUBLISH
	ShardedOff  = "off"  // by PUBLISH, which every node forwards to all others
)

// ValidSharded returns an error for an unknown mode.
func ValidSharded(mode string) error {
	switch mode {
	case ShardedAuto, ShardedOn, ShardedOff:
		return nil
	}
	return fmt.Errorf("sharded must be %s, %s or %s, not %q", ShardedAuto, ShardedOn, ShardedOff, mode)
}

// Topic is a channel of PUBLISH or, if Sharded is true, of SPUBLISH.
type Topic struct {
	Channel string
	Sharded bool
}

// Command returns the command that publishes to the topic: PUBLISH or SPUBLISH.
func (t Topic) Command() string {
	if t.Sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Herald decides by Redisson's rule which command publishes a release. Outside a cluster it is PUBLISH. In a cluster it
// is SPUBLISH if the servers support PUBSUB SHARDNUMSUB, as Redis 7 and later do. Otherwise it is PUBLISH. The modes on
// and off override this rule in a cluster.
type Herald struct {
	cluster *redis.ClusterClient // nil outside a cluster
	mode    string
	decided atomic.Pointer[bool] // whether channels are sharded
	calls   bounded.Calls
}

// NewHerald returns a Herald for the node. Outside a cluster the mode has no effect.
func NewHerald(node goredis.Node, mode string) *Herald {
	h := &Herald{mode: mode}
	if node.Clustered() {
		h.cluster = node.Cluster()
	}
	return h
}

// Learn decides once whether channels are sharded. In mode auto on a cluster, Learn sends PUBSUB SHARDNUMSUB. If no
// reply arrives before ctx ends, Learn returns an error. Topic may be called only after Learn has succeeded.
func (h *Herald) Learn(ctx context.Context) error {
	if h.decided.Load() != nil {
		return nil
	}
	sharded := h.cluster != nil && h.mode != ShardedOff
	if sharded && h.mode == ShardedAuto {
		err := h.calls.Do(ctx, func() error { return h.cluster.PubSubShardNumSub(ctx, "0").Err() })
		if _, unknown := errors.AsType[redis.Error](err); unknown {
			sharded = false
		} else if err != nil {
			return fmt.Errorf("find out whether the cluster has sharded channels: %w", err)
		}
	}
	h.decided.Store(&sharded)
	return nil
}

// Topic returns the topic on which a release of the key is published. The topic is sharded only if the channel is in
// the key's hash slot, because a script must not use SPUBLISH in another slot.
func (h *Herald) Topic(key, channel string) Topic {
	return Topic{channel, *h.decided.Load() && tag(key) == tag(channel)}
}

// Open opens the notifier's connection in advance. It does nothing for sharded channels, because their node is known
// only when the first waiter joins.
func (h *Herald) Open(ctx context.Context, notifier Notifier) error {
	if err := h.Learn(ctx); err != nil || *h.decided.Load() {
		return err
	}
	if err := notifier.Open(ctx); err != nil {
		return fmt.Errorf("open the subscription connection: %w", err)
	}
	return nil
}

// Close waits at most two seconds for calls that have outlasted their callers.
func (h *Herald) Close() { h.calls.Close() }
