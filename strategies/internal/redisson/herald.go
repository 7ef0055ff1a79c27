package redisson

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// How a release is told on a cluster: Redisson's ShardedSubscriptionMode.
const (
	ShardedAuto = "auto" // by SPUBLISH where the servers know it
	ShardedOn   = "on"   // by SPUBLISH
	ShardedOff  = "off"  // by PUBLISH, which every node passes on to all others
)

// ValidSharded says what is wrong with a mode.
func ValidSharded(mode string) error {
	switch mode {
	case ShardedAuto, ShardedOn, ShardedOff:
		return nil
	}
	return fmt.Errorf("sharded must be %s, %s or %s, not %q", ShardedAuto, ShardedOn, ShardedOff, mode)
}

// Topic is a channel, and of which sort.
type Topic struct {
	Channel string
	Sharded bool
}

// Command is what publishes to it.
func (t Topic) Command() string {
	if t.Sharded {
		return "SPUBLISH"
	}
	return "PUBLISH"
}

// Herald knows how a release is told. It decides as Redisson does: outside a cluster
// for PUBLISH; in one for SPUBLISH if PUBSUB SHARDNUMSUB is known there, as it is
// from Redis 7 on.
type Herald struct {
	cluster *redis.ClusterClient // nil outside of one
	mode    string
	decided atomic.Pointer[bool] // whether channels are sharded
}

// NewHerald returns a Herald for that client. Outside a cluster the mode is of no
// matter.
func NewHerald(client redis.UniversalClient, mode string) *Herald {
	cluster, _ := client.(*redis.ClusterClient)
	return &Herald{cluster: cluster, mode: mode}
}

// Learn decides, once; in a cluster it asks for that, and may fail. Topic needs it to
// have succeeded.
func (h *Herald) Learn(ctx context.Context) error {
	if h.decided.Load() != nil {
		return nil
	}
	sharded := h.cluster != nil && h.mode != ShardedOff
	if sharded && h.mode == ShardedAuto {
		err := h.cluster.PubSubShardNumSub(ctx, "0").Err()
		if _, unknown := errors.AsType[redis.Error](err); unknown {
			sharded = false
		} else if err != nil {
			return fmt.Errorf("ask whether the cluster has sharded channels: %w", err)
		}
	}
	h.decided.Store(&sharded)
	return nil
}

// Topic is where a release of the key is told. A script may not publish to another
// slot than its keys': a key of which no channel in its slot can be made is told
// of by PUBLISH.
func (h *Herald) Topic(key, channel string) Topic {
	return Topic{channel, *h.decided.Load() && tag(key) == tag(channel)}
}

// Open opens a line's connection ahead. To which node a sharded channel's goes is
// known with the first waiter only.
func (h *Herald) Open(ctx context.Context, line Line) error {
	if err := h.Learn(ctx); err != nil || *h.decided.Load() {
		return err
	}
	if err := line.Open(ctx); err != nil {
		return fmt.Errorf("open the subscription connection: %w", err)
	}
	return nil
}
