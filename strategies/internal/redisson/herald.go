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

// How a release is told on a cluster: Redisson's ShardedSubscriptionMode.
const (
	ShardedAuto = "auto" // by SPUBLISH where the servers know it
	ShardedOn   = "on"   // by SPUBLISH
	ShardedOff  = "off"  // by PUBLISH, which every node passes on to all others
)

// ValidSharded returns an error for an unknown mode.
func ValidSharded(mode string) error {
	switch mode {
	case ShardedAuto, ShardedOn, ShardedOff:
		return nil
	}
	return fmt.Errorf("sharded must be %s, %s or %s, not %q", ShardedAuto, ShardedOn, ShardedOff, mode)
}

// Topic is a channel, sharded or not.
type Topic struct {
	Channel string
	Sharded bool
}

// Command returns the command that publishes to the topic.
func (t Topic) Command() string {
	if t.Sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Herald knows how a release is told. It decides as Redisson does: outside a cluster for
// PUBLISH; in a cluster for SPUBLISH if the servers know PUBSUB SHARDNUMSUB, as they do from
// Redis 7 on.
type Herald struct {
	cluster *redis.ClusterClient // nil outside of one
	mode    string
	decided atomic.Pointer[bool] // whether channels are sharded
	calls   bounded.Calls
}

// NewHerald returns a Herald for that node. Outside a cluster the mode has no effect.
func NewHerald(node goredis.Node, mode string) *Herald {
	h := &Herald{mode: mode}
	if node.Clustered() {
		h.cluster = node.Cluster()
	}
	return h
}

// Learn decides once. In a cluster it asks the servers, which may fail; it then ends with ctx. Topic may be
// called only after a Learn that succeeded.
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
			return fmt.Errorf("ask whether the cluster has sharded channels: %w", err)
		}
	}
	h.decided.Store(&sharded)
	return nil
}

// Topic returns where a release of the key is told. A script may not publish to another slot
// than that of its keys: if the channel is in another slot, the release is told by PUBLISH.
func (h *Herald) Topic(key, channel string) Topic {
	return Topic{channel, *h.decided.Load() && tag(key) == tag(channel)}
}

// Open opens a notifier's connection ahead. It does nothing for sharded channels: their node is
// known only with the first waiter.
func (h *Herald) Open(ctx context.Context, notifier Notifier) error {
	if err := h.Learn(ctx); err != nil || *h.decided.Load() {
		return err
	}
	if err := notifier.Open(ctx); err != nil {
		return fmt.Errorf("open the subscription connection: %w", err)
	}
	return nil
}

// Close waits for the calls whose callers have not waited for the answer, for at most two seconds.
func (h *Herald) Close() { h.calls.Close() }
