package locktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// outside is the suite's own client of a server: it looks at the server and disturbs it.
type outside struct {
	redis.UniversalClient
	before map[string]bool // ids of the connections that are not the test's
}

// outsideName is the CLIENT name of those connections.
const outsideName = "locktest-outside"

func (s *stage) look(node goredis.Node) {
	options := *goredis.OptionsOf(node)
	options.ClientName, options.MaxRetries = outsideName, 3
	client := redis.NewUniversalClient(&options)
	o := &outside{UniversalClient: client, before: map[string]bool{}}
	s.Cleanup(func() {
		if !s.passed() {
			ctx, cancel := context.WithTimeout(context.Background(), teardown)
			defer cancel()
			_ = o.unlink(ctx, "*"+s.id+"*") // its server may be gone
		}
		_ = client.Close()
	})
	for _, c := range s.connections(o) {
		o.before[c["id"]] = true
	}
	s.outside = append(s.outside, o)
}

// connections returns the fields of CLIENT LIST.
func (s *stage) connections(o *outside) []map[string]string {
	list, err := o.ClientList(context.Background()).Result()
	if err != nil {
		s.notJudged("list the connections: %w", err)
	}
	return slices.Collect(replies.Clients(list))
}

// nothingLeft closes the instances and checks what remains of the test: no key but those that
// the strategy declares, and no channel, connection or goroutine.
func (s *stage) nothingLeft() {
	for _, i := range s.instances {
		if err := i.Close(); err != nil {
			s.broken(tidy, "close: %v", err)
		}
	}
	s.gone("keys and channels", func() []string { return s.leftovers() })
	for _, i := range s.instances {
		for _, client := range i.nodes {
			_ = client.Close()
		}
	}
	s.gone("connections", s.unownedConnections)
	pprof.SetGoroutineLabels(context.Background()) // this goroutine does not count
	s.gone("goroutines", s.goroutines)
}

// gone waits until left returns nothing.
func (s *stage) gone(what string, left func() []string) {
	var last []string
	if !s.eventually(func() bool { last = left(); return len(last) == 0 }) {
		s.broken(tidy, "%s are left: %q", what, last)
	}
}

// leftovers returns the test's keys and channels on all servers, except those that may stay.
func (s *stage) leftovers() []string {
	ctx := context.Background()
	var left []string
	for _, o := range s.outside {
		keys := o.Scan(ctx, 0, "*"+s.id+"*", 1000).Iterator()
		for keys.Next(ctx) {
			if s.declared(keys.Val()) || s.expiring && o.PTTL(ctx, keys.Val()).Val() != -1 {
				continue
			}
			left = append(left, keys.Val())
		}
		if err := keys.Err(); err != nil {
			s.notJudged("look for keys: %w", err)
		}
		for _, list := range []func(context.Context, string) *redis.StringSliceCmd{
			o.PubSubChannels,
			o.PubSubShardChannels,
		} {
			channels, err := list(ctx, "*"+s.id+"*").Result()
			if _, unknown := errors.AsType[redis.Error](err); unknown { // before Redis 7
				continue
			}
			if err != nil {
				s.notJudged("look for channels: %w", err)
			}
			left = append(left, channels...)
		}
	}
	return left
}

// declared says whether a key matches one of the persistent patterns. {key} must match the
// whole name of a lock that the test has used, with or without braces: otherwise the pattern
// {key} of a semaphore would match every key.
func (s *stage) declared(key string) bool {
	return slices.ContainsFunc(s.info.Persistent, func(pattern string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(s.locks)), func(lock string) bool {
			return key == strings.ReplaceAll(pattern, "{key}", lock) ||
				key == strings.ReplaceAll(pattern, "{key}", "{"+lock+"}")
		})
	})
}

// unownedConnections returns the connections that were opened during the check, less as many
// as the caller's own clients hold.
func (s *stage) unownedConnections() []string {
	left := s.newConnections()
	for _, client := range s.fixture.Clients {
		left = left[min(len(left), int(client.PoolStats().TotalConns)):]
	}
	return left
}

func (s *stage) newConnections() []string {
	var left []string
	for _, o := range s.outside {
		for _, c := range s.connections(o) {
			if !o.before[c["id"]] && c["name"] != outsideName {
				left = append(left, fmt.Sprintf("%s, last command %s", c["addr"], c["cmd"]))
			}
		}
	}
	return left
}

func (s *stage) label() pprof.LabelSet { return pprof.Labels("locktest", s.prefix) }

// goroutines returns the goroutines that carry the test's label, one line each.
func (s *stage) goroutines() []string {
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		s.notJudged("list the goroutines: %w", err)
	}
	var left []string
	for record := range strings.SplitSeq(profile.String(), "\n\n") {
		if !strings.Contains(record, s.prefix) {
			continue
		}
		var calls []string
		for line := range strings.Lines(record) {
			if fields := strings.Fields(line); len(fields) > 2 && fields[0] == "#" &&
				strings.HasPrefix(fields[1], "0x") {
				calls = append(calls, fields[2])
			}
		}
		left = append(left, strings.Join(calls, " < "))
	}
	return left
}
