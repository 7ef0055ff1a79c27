package doctor

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// redisOnly makes no symptom of other stores.
func redisOnly(check func(examination, context.Context) Symptom) func(examination, context.Context) Symptom {
	return func(e examination, ctx context.Context) Symptom {
		if e.name != store.Redis {
			return Symptom{}
		}
		return check(e, ctx)
	}
}

// asker is the server of Redis: it lets a function use the connection to one of its nodes.
type asker interface {
	Count() int
	Ask(ctx context.Context, place int, do func(context.Context, redis.UniversalClient) error) error
}

// ask returns the reply of the first node as a map; nil if it is refused.
func (e examination) ask(ctx context.Context, words ...any) (found map[string]string) {
	_ = e.server.(asker).Ask(ctx, 0, func(ctx context.Context, client redis.UniversalClient) error {
		if words[0] == "INFO" {
			text, err := client.Info(ctx, words[1].(string)).Result()
			if err == nil {
				found = replies.ParseInfo(text)
			}
			return err
		}
		var err error
		found, err = client.ConfigGet(ctx, words[1].(string)).Result()
		return err
	})
	return found
}

// refused returns the rights that lockbench itself would use and does not have.
func (e examination) refused(ctx context.Context) []string {
	server, ok := e.server.(asker)
	if !ok {
		return nil
	}
	var missing []string
	_ = server.Ask(ctx, 0, func(ctx context.Context, client redis.UniversalClient) error {
		for _, ask := range [][]any{
			{"+info", "INFO", "server"},
			{"+config|get", "CONFIG", "GET", "maxclients"},
			{"+client|list", "CLIENT", "LIST"},
			{"+scan", "SCAN", "0", "COUNT", "1"},
			{"+pubsub|channels", "PUBSUB", "CHANNELS", engine.Prefix + "none"},
		} {
			if err := client.Do(ctx, ask[1:]...).Err(); servers.Refused(err) == "NOPERM" {
				missing = append(missing, ask[0].(string))
			}
		}
		return nil
	})
	return missing
}

func (e examination) memory(ctx context.Context) Symptom {
	fields := e.ask(ctx, "INFO", "memory")
	used, known := fields["used_memory"]
	if !known {
		return symptom("memory", Unknown, "the server does not report how much it uses")
	}
	const mb = 1 << 20
	most, _ := strconv.ParseFloat(fields["maxmemory"], 64)
	now, _ := strconv.ParseFloat(used, 64)
	if most == 0 {
		return symptom("memory", Well, "%.1f MB used, no maxmemory", now/mb)
	}
	policy := fields["maxmemory_policy"]
	s := symptom("memory", Well, "%.1f MB used of a maxmemory of %.1f MB (%s)", now/mb, most/mb, policy)
	switch {
	case now >= most:
		s.State, s.Next = Trouble, []string{servers.NextStep("OOM")}
	case policy != "noeviction" && policy != "":
		s.State = Note
		s.Next = []string{"two clients may hold an evicted lock at once: keep locks on a server with noeviction"}
	}
	return s
}

// tolerable is the difference of clocks for which locks that compare them allow.
const tolerable = 100 * time.Millisecond

func (e examination) clock(ctx context.Context) Symptom {
	server := e.server.(asker)
	var worst, around time.Duration
	for place := range server.Count() {
		err := server.Ask(ctx, place, func(ctx context.Context, client redis.UniversalClient) error {
			before := time.Now()
			at, err := client.Time(ctx).Result()
			if err != nil {
				return err
			}
			trip := time.Since(before)
			if off := at.Sub(before.Add(trip / 2)); off.Abs() > worst.Abs() {
				worst, around = off, trip/2
			}
			return nil
		})
		if err != nil {
			return symptom("clock", Unknown, "the server does not report its time: %s", oneLine(err))
		}
	}
	s := symptom("clock", Well, "the server's is %v off ours, ± %v",
		worst.Round(time.Microsecond), around.Round(time.Microsecond))
	if worst.Abs() > tolerable {
		s.State = Note
		s.Next = []string{"synchronise the clocks (chrony, NTP): redlock, fair and expirable permits compare them"}
	}
	return s
}

func (e examination) persistence(ctx context.Context) Symptom {
	fields := e.ask(ctx, "INFO", "persistence")
	var kinds []string
	if fields["aof_enabled"] == "1" {
		fsync := untrusted.Printable(e.ask(ctx, "CONFIG", "appendfsync")["appendfsync"])
		kinds = append(kinds, "every write (AOF, fsync "+fsync+")")
	}
	if save := untrusted.Printable(e.ask(ctx, "CONFIG", "save")["save"]); save != "" {
		kinds = append(kinds, "snapshots (save "+save+")")
	}
	switch {
	case len(fields) == 0:
		return symptom("persistence", Unknown, "the server does not report what it writes to disk")
	case fields["rdb_last_bgsave_status"] == "err" || fields["aof_last_write_status"] == "err":
		s := symptom("persistence", Trouble, "the last write to disk failed")
		s.Next = []string{servers.NextStep("MISCONF")}
		return s
	case len(kinds) == 0:
		return symptom("persistence", Well, "nothing is written to disk")
	}
	s := symptom("persistence", Note, "it writes %s", strings.Join(kinds, " and "))
	s.Next = []string{
		"forks and fsyncs may fall into a window: measure on a server without them, or as in production, and say so",
	}
	return s
}
