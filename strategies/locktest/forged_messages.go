package locktest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// forgedMessages publishes repeated and altered hand-over messages while a client holds the lock, as an attacker with
// the right to publish could. No other client may get the lock, no token may be taken from a message, and no key may be
// deleted.
func forgedMessages(s *stage) {
	b, all := s.book(), s.several(3, longTTL)
	f := s.forger()
	for range 2 { // twice, because the ids of two hand-overs may differ only in a number
		for _, to := range all[1:] {
			leases := b.fill(all[0], longTTL)
			waiting := b.queue([]*instance{to}, 1, time.Millisecond, longTTL)
			f.listen()
			b.free(leases...)
			b.all(waiting, "a release")
		}
	}
	f.listen()
	if len(f.heard) == 0 {
		s.notApplicable("its hand-over publishes no message")
	}

	leases, others := b.fill(all[0], longTTL), s.fill(all[1], "other")
	waiting := b.queue(all[1:], 4, time.Millisecond, longTTL)
	if f.publish() == 0 {
		s.notApplicable("no client subscribes to the messages of its hand-over")
	}
	for before, look := b.count(), 0; look < 50 && b.count() == before; look++ {
		time.Sleep(soon / 50)
	}
	for _, w := range waiting {
		w.heard()
	}
	if !s.held(all[2], "other") {
		s.errorf("a forged message freed a lock that another client held")
	}
	if f.gone() {
		s.errorf("a forged message deleted a key that does not belong to a lock")
	}
	for _, lease := range others {
		_ = s.again(lease)
	}
	b.free(leases...)
	b.all(waiting, "forged messages")
	b.free(b.fill(all[0], longTTL)...) // if a token was taken from a message, the next token is not larger
	_ = f.close()
}

// forger receives a lock's messages and publishes forged messages. It uses the suite's own connections.
type forger struct {
	*stage
	ears    []*redis.PubSub   // one subscription per server
	heard   map[string]string // one received message of each shape
	sharded map[string]bool   // sharded channels, which need SPUBLISH
}

func (s *stage) forger() *forger {
	f := &forger{stage: s, heard: map[string]string{}, sharded: map[string]bool{}}
	for _, o := range s.outside {
		f.ears = append(f.ears, o.PSubscribe(context.Background(), "*"))
	}
	s.Cleanup(func() { _ = f.close() })
	return f
}

func (f *forger) close() (err error) {
	for _, ear := range f.ears {
		err = cmp.Or(err, ear.Close())
	}
	return err
}

// channels returns the lock's channels on a server, and records which of them are sharded.
func (f *forger) channels(o *outside) []string {
	ctx, pattern := context.Background(), "*"+f.id+"*"
	plain, err := o.PubSubChannels(ctx, pattern).Result()
	f.must("use the lock's channels", err)
	sharded, err := o.PubSubShardChannels(ctx, pattern).Result()
	if _, unknown := errors.AsType[redis.Error](err); !unknown { // before Redis 7
		f.must("use the lock's channels", err)
	}
	for _, channel := range sharded {
		f.sharded[channel] = true
	}
	return append(plain, sharded...)
}

// listen subscribes to the lock's sharded channels that exist now, and records the messages received so far. The
// pattern subscriptions of forger cover all other channels.
func (f *forger) listen() {
	ctx := context.Background()
	for n, o := range f.outside {
		ear := f.ears[n]
		for _, channel := range f.channels(o) {
			if f.sharded[channel] {
				f.must("use the lock's channels", ear.SSubscribe(ctx, channel))
			}
		}
		f.must("use the lock's channels", ear.Ping(ctx))
		for answered := false; !answered; { // the PONG comes after all messages published before
			got, err := ear.ReceiveTimeout(ctx, f.patience)
			f.must("use the lock's channels", err)
			switch m := got.(type) {
			case *redis.Message:
				f.heard[word.ReplaceAllString(m.Payload, "_")] = m.Payload
			case *redis.Pong:
				answered = true
			}
		}
	}
}

// word matches one part of a message, such as an id, a token or a name.
var word = regexp.MustCompile(`[A-Za-z0-9]+`)

// A forgery varies these parts of a message: the number in an id, a token, and a name. A name, such as that of a
// process, is also part of a channel's name.
var (
	idNumber = regexp.MustCompile(`\b[0-9a-z]{1,3}\b`)
	aToken   = regexp.MustCompile(`\b[0-9]{4,18}\b`)
	aName    = regexp.MustCompile(`[A-Za-z0-9-]{8,}`)
)

// session and loggedIn are a key and its value, as a service may store them next to its locks. No message may delete
// this key.
const session, loggedIn = "session", "logged-in"

// publish sends forgeries of each received message to all channels of the lock. It returns the number of forgeries that
// it sent.
func (f *forger) publish() (sent int) {
	ctx := context.Background()
	for _, o := range f.outside {
		f.must("use the lock's channels", o.Set(ctx, f.named(session), loggedIn, 0).Err())
		channels := f.channels(o)
		for _, shape := range slices.Sorted(maps.Keys(f.heard)) {
			for texts := range slices.Chunk(f.forgeriesOf(f.heard[shape], channels), 500) {
				_, err := o.Pipelined(ctx, func(p redis.Pipeliner) error {
					for _, text := range texts {
						for _, channel := range channels {
							send := p.Publish
							if f.sharded[channel] {
								send = p.SPublish
							}
							send(ctx, channel, text)
							sent++
						}
					}
					return nil
				})
				f.must("use the lock's channels", err)
			}
		}
	}
	f.Logf("%d messages were forged from %q", sent, slices.Sorted(maps.Values(f.heard)))
	return sent
}

// gone reports whether the key session was missing on a server, and deletes the key on all servers.
func (f *forger) gone() (gone bool) {
	for _, o := range f.outside {
		n, err := o.Del(context.Background(), f.named(session)).Result()
		f.must("use the lock's channels", err)
		gone = gone || n == 0
	}
	return gone
}

// forgeriesOf returns forgeries of a received message: a copy, variants, and invalid messages. The variants contain
// other numbers and tokens, the names of other locks, and the names of other processes. The names of processes are
// taken from the channels' names.
func (f *forger) forgeriesOf(heard string, channels []string) []string {
	const lock = "\x00" // replaces the lock's name, whose parts must not be varied
	locks := []string{f.prefix + f.named("key"), f.prefix + f.named("other"), f.named(session)}
	made := []string{strings.ReplaceAll(heard, locks[0], lock)}

	id, rest, _ := strings.Cut(made[0], " ")
	tokens := otherTokens(made[0])
	made = vary(made, aName, slices.Compact(slices.Sorted(slices.Values(
		aName.FindAllString(strings.Join(append(channels, made[0]), " "), -1)))))
	made = vary(made, idNumber, numbers())
	made = append(made, loggedIn, loggedIn+" "+rest, id+" "+loggedIn)
	made = vary(made, aToken, tokens)
	made = vary(made, regexp.MustCompile(lock), locks)
	return append(made, heard, "", " ", "0", "-1", "{}", "\xff\xfe", heard+heard, strings.Repeat("x", 1<<16),
		f.named(session), loggedIn+" 1 "+f.named(session))
}

// vary returns, for each text and each word, the text with its first match replaced by the word. A text without a match
// stays unchanged.
func vary(texts []string, match *regexp.Regexp, words []string) (varied []string) {
	for _, text := range texts {
		at := match.FindStringIndex(text)
		if at == nil || len(words) == 0 {
			varied = append(varied, text)
			continue
		}
		for _, word := range words {
			varied = append(varied, text[:at[0]]+word+text[at[1]:])
		}
	}
	return varied
}

// numbers returns the numbers from 0 to 40 in base 36 and base 10, which the ids of a lock's first messages may
// contain.
func numbers() (all []string) {
	for n := range int64(41) {
		all = append(all, strconv.FormatInt(n, 36))
		if n > 9 {
			all = append(all, strconv.FormatInt(n, 10))
		}
	}
	return all
}

// otherTokens returns the token of a message, a token that no lease has had yet, and values that no lease can have.
func otherTokens(text string) []string {
	token, err := strconv.ParseInt(aToken.FindString(text), 10, 64)
	if err != nil {
		return nil
	}
	tokens := []string{strconv.FormatInt(token, 10)}
	for _, n := range []int64{token + 1<<40, math.MaxInt64, math.MaxInt64/1024 + 1, 0, -1, math.MinInt64} {
		tokens = append(tokens, strconv.FormatInt(n, 10))
	}
	return tokens
}
