package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/semaphore"
)

func init() { strategies.RegisterStrategy(semaphore.Strategy()) }

// cluster is a Redis Cluster of three primaries. All subtests share it.
type cluster struct {
	*redistest.Topology
	outside *redis.ClusterClient
	nodes   []*redis.Client // for a look at each
}

func startCluster(t *testing.T) cluster {
	t.Helper()
	top := redistest.StartTopology(t, "cluster:3")
	return cluster{top, top.Nodes(t)[0].Client.(*redis.ClusterClient), top.Clients(t)}
}

func (c cluster) start(t *testing.T, variant string) trial.Process {
	t.Helper()
	return trial.StartOn(t, c.Nodes(t), variant, time.Hour)
}

// calls returns how often the nodes have executed command, summed over all nodes.
func (c cluster) calls(t *testing.T, command string) (n int) {
	t.Helper()
	for _, node := range c.nodes {
		info, err := node.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		n += int(replies.ParseInfo(info).Calls()[command])
	}
	return n
}

// passOn makes holder acquire the lock key, and parks n waiters in each of the processes others. It releases the lock
// until every waiter has had it. The function before is called ahead of each of these releases. The test fails if a
// release wakes no waiter.
func passOn(t *testing.T, key string, n int, before func(), holder trial.Process, others ...trial.Process) {
	t.Helper()
	lease := holder.Acquire(t, key)
	parked := trial.ParkOn(t, key, n, others...)
	for range n * len(others) {
		before()
		trial.Release(t, lease)
		lease = parked.Next(t)
	}
	trial.Release(t, lease)
}

// Each release must wake a waiter of another process, whichever node of the cluster stores the key. Releases must
// publish with the expected command only: SPUBLISH or PUBLISH.
func TestCluster(t *testing.T) {
	const waiters = 3
	c := startCluster(t)
	for _, test := range []struct {
		variant   string
		published string
		keys      []string
	}{
		{"pubsub", "spublish", []string{"a", "b", "c", "{tag}d"}},
		{"pubsub:sharded=on", "spublish", []string{"e"}},
		{"pubsub:sharded=off", "publish", []string{"f"}},
		{"pubsub", "publish", []string{"odd{key", "{}no tag"}}, // no channel is in their slot
		{"pubsub-broadcast", "publish", []string{"g", "h", "i"}},
		{"fenced", "spublish", []string{"k", "l"}},
		{"fair", "spublish", []string{"m", "n"}},
		{"fair:sharded=off", "publish", []string{"o"}},
		{"semaphore:permits=1", "spublish", []string{"p", "q"}},
		{"semaphore:expirable=true,permits=1", "spublish", []string{"r", "s"}},
	} {
		t.Run(test.variant+" "+test.keys[0], func(t *testing.T) {
			holder, a, b := c.start(t, test.variant), c.start(t, test.variant), c.start(t, test.variant)
			other := map[string]string{"publish": "spublish", "spublish": "publish"}[test.published]
			before, beforeOther := c.calls(t, test.published), c.calls(t, other)
			for _, key := range test.keys {
				passOn(t, key, waiters, func() {}, holder, a, b)
			}
			if n, most := c.calls(t, test.published)-before,
				len(test.keys)*(2*waiters+2); n < len(test.keys)*2*waiters || n > most {
				t.Errorf("%d times %s for %d releases of %d keys", n, test.published, 2*waiters+1, len(test.keys))
			}
			if n := c.calls(t, other) - beforeOther; n != 0 {
				t.Errorf("%d times %s", n, other)
			}
		})
	}
	t.Run("listening", c.listening)
	t.Run("cut off", c.cutOff)
	t.Run("many keys", c.manyKeys)
	for _, node := range c.nodes {
		for _, key := range node.Keys(t.Context(), "*").Val() { // numbers may stay: fencing tokens, permits
			if kind := node.Type(t.Context(), key).Val(); kind != "string" {
				t.Errorf("%s is left, a %s", key, kind)
			}
		}
	}
}

// A listener subscribes on the key's node, as a Redisson client does. It must receive the message of a release. A
// release in Redisson's way must wake the waiters of this implementation.
func (c cluster) listening(t *testing.T) {
	const channel = "redisson_lock__channel:{trial:wire}"
	p := c.start(t, "pubsub")
	lease := p.Acquire(t, "wire")
	listener := c.outside.SSubscribe(t.Context(), channel)
	defer func() { _ = listener.Close() }()
	if _, err := listener.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	parked := trial.ParkOn(t, "wire", 5, p)
	node, err := c.outside.MasterForKey(t.Context(), channel)
	if err != nil {
		t.Fatal(err)
	}
	if n := node.PubSubShardNumSub(t.Context(), channel).Val()[channel]; n != 2 {
		t.Errorf("%d subscriptions of the listener and of one process with five waiters", n)
	}
	trial.Release(t, lease)
	message, err := listener.ReceiveMessage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if message.Payload != "0" {
		t.Errorf("a release published %q", message.Payload)
	}
	lease = parked.Next(t)
	// To release the lock as a Java client does, the test deletes its key and publishes a message.
	c.outside.Del(t.Context(), "trial:wire")
	if err := c.outside.SPublish(t.Context(), channel, "0").Err(); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		trial.Release(t, parked.Next(t))
	}
	if err := lease.Release(t.Context()); err != strategies.ErrNotHeld {
		t.Errorf("release of what is lost: %v", err)
	}
}

// All subscription connections are cut before each release. Every waiter must still get the lock.
func (c cluster) cutOff(t *testing.T) {
	for _, variant := range []string{"pubsub", "pubsub-broadcast"} {
		passOn(t, "cut", 3, func() {
			for _, node := range c.nodes {
				node.ClientKillByFilter(t.Context(), "TYPE", "pubsub")
			}
		}, c.start(t, variant), c.start(t, variant))
	}
}

// A process waits for 100 keys, one after the other. Afterwards it may have at most one subscription connection to each
// node.
func (c cluster) manyKeys(t *testing.T) {
	const keys = 100
	p := c.start(t, "pubsub")
	connections := func() (n int) {
		for _, node := range c.nodes {
			n += strings.Count(node.ClientList(t.Context()).Val(), "subscribe")
		}
		return n
	}
	before := connections()
	for i := range keys {
		passOn(t, fmt.Sprint("one of many ", i), 1, func() {}, p, p)
	}
	if n := connections() - before; n > len(c.nodes) {
		t.Errorf("%d connections are left to %d nodes", n, len(c.nodes))
	}
}

// Close must wake a caller that waits in Acquire, which must then return ErrClosed.
func TestCloseWithAWaiter(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, variant := range []string{"pubsub", "pubsub:sharded=off"} {
		holder, p := c.start(t, variant), c.start(t, variant)
		held := holder.Acquire(t, variant)
		ended := make(chan error, 1)
		go func() {
			_, err := p.Locker.Acquire(context.Background(), variant)
			ended <- err
		}()
		poll.Until(t, "it waits", func() bool { return p.Counts().Attempts >= 2 })
		if err := p.Locker.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-ended:
			if !errors.Is(err, strategies.ErrClosed) {
				t.Errorf("%s: the wait ended with %v, want ErrClosed", variant, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the wait goes on", variant)
		}
		trial.Release(t, held)
	}
}
