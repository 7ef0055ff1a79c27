package handoff_test

import (
	"crypto/sha1" //nolint:gosec // as grant.lua
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// message returns the grant message that Redis would publish when it grants lock, with the given token, to the slot id.
// The secret in id determines the proof in the message.
func message(id string, token int64, lock string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d %s", id, token, lock)) //nolint:gosec // as above
	name := id[:strings.LastIndex(id, ":")]
	return fmt.Sprintf("%s %d %s %s", name, token, hex.EncodeToString(sum[:8]), lock)
}

// forgeries returns forged grant messages for the process that listens on the channel. They have wrong proofs, tokens
// out of range, keys of other locks, or an invalid form.
func forgeries(channel string) (all []string) {
	process := channel[strings.LastIndex(channel, ":")+1:]
	for n := range 60 {
		id := process + ":" + strconv.FormatInt(int64(n), 36)
		token := []int64{1, math.MaxInt64 / handoff.MostTurns, math.MaxInt64, -1}[n%4]
		all = append(all,
			fmt.Sprintf("%s %d %s", id, token, lock),
			fmt.Sprintf("%s %d %016x %s", id, token, n, lock),
			message(id+":AAAAAAAAAAA", token, lock),
			message(id+":", token, "session:42"))
	}
	return append(all,
		"logged-in 1 session:42", process+":1 1 session:42", process+":2 1  trial:other", "", " ", "  ", "   ")
}

// A client that may publish, but may not read the keys, cannot choose a fencing token, even if it makes proofs from ids
// without their secrets. The test publishes at least 250 messages as such a client. They may cause at most 60 scripts
// to run. The check "forged messages" of the conformance suite also tests that there is no second holder and that no
// key is deleted.
func TestForgedMessages(t *testing.T) {
	onOne(t, every, func(t *testing.T, server *redistest.Server, variant string) {
		h, p := attentive(t, server, variant), attentive(t, server, variant)
		q := newQueue(t, server)
		ctx := t.Context()
		first := acquire(t, h)
		q.join("waiter", p)
		forger := forger(t, q.server, server.Addr)
		var held *holding
		sent := 0
		calls := locktest.Calls(t, q.server, func() {
			for _, channel := range forger.PubSubShardChannels(ctx, "*").Val() {
				for _, m := range forgeries(channel) {
					if err := forger.SPublish(ctx, channel, m).Err(); err != nil {
						t.Fatal(err)
					}
					sent++
				}
			}
			trial.Release(t, first) // its message comes after the forged ones
			held = q.next("waiter")
		})
		if sent < 250 {
			t.Fatalf("%d messages", sent)
		}
		if n := calls["evalsha"] + calls["eval"]; n > 60 {
			t.Errorf("%d messages had %d scripts run", sent, n)
		}
		least, most := first.FencingToken(), (time.Now().UnixMicro()+1)*handoff.MostTurns // of Redis's clock
		if token := held.FencingToken(); token <= least || token > most {
			t.Errorf("the next lease has token %d, want one between %d and %d", token, least, most)
		}
		trial.Release(t, held)
		q.nothingLeft(h, p)
	})
}

// A client that may read the queue and publish can make a message with a valid proof. If Redis has not granted the
// lock, the slot named in the message stays in the queue. The lease that this slot gets later has a token from Redis,
// not the forged one.
func TestForgedMessageWithValidProof(t *testing.T) {
	t.Parallel()
	for _, variant := range slotKinds {
		p := newPair(t, variant, time.Hour, 1, 0)
		ctx := t.Context()
		id, _, _ := strings.Cut(p.server.LIndex(ctx, list, 0).Val(), " ")
		before := handoff.Listener(locker(p.a))
		killSubscriptions(t, p.server)
		poll.Until(t, "the process listens again", func() bool {
			now := handoff.Listener(locker(p.a))
			return now != nil && now != before
		})
		forged := message(id, math.MaxInt64/handoff.MostTurns, lock)
		heard := p.server.SPublish(ctx, "trial:handoff:"+id[:26], forged).Val()
		if heard != 1 {
			t.Fatalf("%d connections received the message", heard)
		}
		if first, _, _ := strings.Cut(p.server.LIndex(ctx, list, 0).Val(), " "); first != id {
			t.Errorf("the slot has changed: %q is now %q", id, first)
		}
		trial.Release(t, p.first)
		held := p.next("a1")
		if token := held.FencingToken(); token > 1<<62 {
			t.Errorf("the lease has the forged token %d", token)
		}
		p.done(held)
	}
}

// Redis does not replicate grant messages, so a subscriber on a replica receives none of the primary's messages. After
// a failover, a process may still be subscribed to the former primary. A client may copy a message of the new primary,
// replace its token, and publish it on the former primary. The lease of the process must not get that token.
func TestListenerAtDemotedPrimary(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	ctx := t.Context()
	open := func() trial.Process {
		p := open(t, &redis.UniversalOptions{Addrs: []string{pair.Addr(0)}, Dialer: pair.Dial}, "handoff", time.Hour)
		handoff.Attend(locker(p), 2*time.Second)
		return p
	}
	h, p := open(), open()
	q := newQueueOn(t, pair.Nodes[0])
	first := acquire(t, h)
	q.join("unheard", p)
	listener := listenToAll(t, pair.Nodes[0], pair.Nodes[1])
	unheard := q.turns(first, "unheard")
	trial.Release(t, unheard)
	first = acquire(t, h)
	q.join("waiter", p)
	pair.Together()
	pair.FailOver()
	trial.Release(t, first)
	var m *redis.Message
	var words []string
	for len(words) < 3 { // Prepare publishes empty messages, which a replica may receive late
		var err error
		if m, err = listener.ReceiveMessage(ctx); err != nil {
			t.Fatal(err)
		}
		words = strings.SplitN(m.Payload, " ", 3)
	}
	before := unheard.FencingToken() / handoff.MostTurns
	if token, err := strconv.ParseInt(words[1], 10, 64); err != nil || token <= before {
		t.Errorf("the replica published the token %s, which was granted at its primary", words[1])
	}
	forged := words[0] + " " + strconv.FormatInt(math.MaxInt64/handoff.MostTurns, 10) + " " + words[2]
	if n := pair.Nodes[0].SPublish(ctx, m.Channel, forged).Val(); n != 1 {
		t.Logf("%d connections received it at the old primary", n) // the process may have noticed already
	}
	held := q.next("waiter")
	if token := held.FencingToken(); token > 1<<62 {
		t.Errorf("the forged message set token %d", token)
	}
	trial.Release(t, held)
}

// forger returns a client of a new user. The user may only publish on shard channels and list these channels.
func forger(t *testing.T, admin *redis.Client, address string) *redis.Client {
	t.Helper()
	rights := []any{"+spublish", "+pubsub|shardchannels", "&*"}
	err := admin.Do(t.Context(), append([]any{"ACL", "SETUSER", "forger", "reset", "on", "nopass"}, rights...)...).Err()
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: address, Username: "forger", Password: "any", DisableIdentity: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// listenToAll uses server to subscribe to all shard channels that have a subscriber on the server of channelsOf.
func listenToAll(t *testing.T, channelsOf, server *redis.Client) *redis.PubSub {
	t.Helper()
	listener := server.SSubscribe(t.Context())
	t.Cleanup(func() { _ = listener.Close() })
	for _, channel := range channelsOf.PubSubShardChannels(t.Context(), "*").Val() {
		if err := listener.SSubscribe(t.Context(), channel); err != nil {
			t.Fatal(err)
		}
		if _, err := listener.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return listener
}
