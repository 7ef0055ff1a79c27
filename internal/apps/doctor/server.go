package doctor

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
)

// pings is enough for a median and a 99th percentile.
const pings = 200

func (e examination) reachable(ctx context.Context) Symptom {
	var times []time.Duration
	err := e.server.Ask(ctx, 0, func(ctx context.Context, client redis.UniversalClient) error {
		for range pings {
			start := time.Now()
			if err := client.Ping(ctx).Err(); err != nil {
				return err
			}
			times = append(times, time.Since(start))
		}
		return nil
	})
	if err != nil {
		return unreached(err)
	}
	slices.Sort(times)
	about := e.server.Describe()
	return symptom("reachable", Well, "%s, %s: PING %v (median of %d), %v (p99)",
		about.Address, about.Network, times[pings/2].Round(time.Microsecond), pings, times[pings*99/100].Round(time.Microsecond))
}

func (e examination) software(context.Context) Symptom {
	about := e.server.Describe()
	if about.Version == "" {
		return symptom("server", Unknown, "it tells neither name nor version")
	}
	name := about.Release()
	if name == about.Version {
		name = "redis " + name
	}
	says := name
	if about.Protocol > 0 {
		says += fmt.Sprintf(", RESP%d", about.Protocol)
	}
	s := symptom("server", Well, "%s", says)
	switch threads := about.IOThreads; {
	case threads == nil:
		s.Says = append(s.Says, "it does not tell its io-threads: CPU is shown as if there were none")
	case *threads > 1:
		s.State = Note
		s.Says = append(s.Says, fmt.Sprintf("%d I/O threads: their waiting costs CPU, so that the main thread and the others are shown apart", *threads))
	}
	return s
}

func (e examination) topology(context.Context) Symptom {
	about := e.server.Describe()
	says := about.Topology
	if len(about.Nodes) > 0 {
		says += ": " + strings.Join(about.Nodes, ", ")
	}
	return symptom("topology", Well, "%s", says)
}

func (e examination) limits(ctx context.Context) Symptom {
	limits, err := e.server.Limits(ctx)
	if err != nil {
		return unreached(err)
	}
	files := "any number of files"
	if most, err := measure.MaxOpenFiles(); err != nil {
		files = "a number of files that the system does not tell"
	} else if most > 0 {
		files = fmt.Sprintf("%d files", most)
	}
	if limits.MaxClients == 0 {
		return symptom("limits", Unknown, "the server does not tell its maxclients; this process may open %s", files)
	}
	s := symptom("limits", Well, "%d of %d connections are free; this process may open %s", limits.MaxClients-limits.Connected, limits.MaxClients, files)
	if limits.MaxClients-limits.Connected < few {
		s.State, s.Next = Note, []string{"raise maxclients for more than a few hundred --clients"}
	}
	return s
}

// few is less than the connections that the usual 500 clients may need.
const few = 1200

// config returns settings; nil if the server refuses them.
func (e examination) config(ctx context.Context, pattern string) (found map[string]string) {
	_ = e.server.Ask(ctx, 0, func(ctx context.Context, client redis.UniversalClient) error {
		var err error
		found, err = client.ConfigGet(ctx, pattern).Result()
		for name, value := range found {
			found[name] = untrusted.Printable(value)
		}
		return err
	})
	return found
}

// fields returns a section of INFO on the first node; nil if the server refuses it.
func (e examination) fields(ctx context.Context, section string) map[string]string {
	var found map[string]string
	_ = e.server.Ask(ctx, 0, func(ctx context.Context, client redis.UniversalClient) error {
		text, err := client.Info(ctx, section).Result()
		if err == nil {
			found = replies.ParseInfo(text)
		}
		return err
	})
	return found
}

func (e examination) memory(ctx context.Context) Symptom {
	fields := e.fields(ctx, "memory")
	used, known := fields["used_memory"]
	if !known {
		return symptom("memory", Unknown, "the server does not tell how much it uses")
	}
	most, _ := strconv.ParseFloat(fields["maxmemory"], 64)
	now, _ := strconv.ParseFloat(used, 64)
	const mb = 1 << 20
	switch policy := fields["maxmemory_policy"]; {
	case most == 0:
		return symptom("memory", Well, "%.1f MB used, no maxmemory", now/mb)
	case now >= most:
		s := symptom("memory", Trouble, "%.1f MB used of a maxmemory of %.1f MB (%s)", now/mb, most/mb, policy)
		s.Next = []string{servers.NextStep("OOM")}
		return s
	case policy != "noeviction" && policy != "":
		s := symptom("memory", Note, "%.1f MB used of a maxmemory of %.1f MB, then keys are evicted (%s)", now/mb, most/mb, policy)
		s.Next = []string{"an evicted lock is a lock that two may hold: keep locks on a server with noeviction"}
		return s
	default:
		return symptom("memory", Well, "%.1f MB used of a maxmemory of %.1f MB", now/mb, most/mb)
	}
}

// lookedAt are the sections of INFO that figures use.
var lookedAt = []string{"server", "clients", "memory", "stats", "cpu", "commandstats", "replication"}

func (e examination) info(ctx context.Context) Symptom {
	var missing []string
	for _, section := range lookedAt {
		if len(e.fields(ctx, section)) == 0 {
			missing = append(missing, section)
		}
	}
	if len(missing) == 0 {
		return symptom("INFO", Well, "all sections are told")
	}
	s := symptom("INFO", Note, "not told: %s; commands, bytes, CPU and peaks of these are dashes", strings.Join(missing, ", "))
	s.Next = []string{"allow the user +info"}
	return s
}

// tolerable is the difference of clocks for which locks that compare them allow.
const tolerable = 100 * time.Millisecond

func (e examination) clock(ctx context.Context) Symptom {
	var worst, around time.Duration
	for place := range e.server.Count() {
		err := e.server.Ask(ctx, place, func(ctx context.Context, client redis.UniversalClient) error {
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
			return symptom("clock", Unknown, "the server does not tell its time: %s", oneLine(err))
		}
	}
	says := fmt.Sprintf("the server's is %v off ours, ± %v", worst.Round(time.Microsecond), around.Round(time.Microsecond))
	if worst.Abs() > tolerable {
		s := symptom("clock", Note, "%s", says)
		s.Next = []string{"keep clocks together (chrony, NTP): redlock, fair and expirable permits compare them"}
		return s
	}
	return symptom("clock", Well, "%s", says)
}

func (e examination) persistence(ctx context.Context) Symptom {
	fields := e.fields(ctx, "persistence")
	if len(fields) == 0 {
		return symptom("persistence", Unknown, "the server does not tell what it writes to disk")
	}
	var kinds []string
	if fields["aof_enabled"] == "1" {
		kinds = append(kinds, "every write (AOF, fsync "+e.config(ctx, "appendfsync")["appendfsync"]+")")
	}
	if save := e.config(ctx, "save")["save"]; save != "" {
		kinds = append(kinds, "snapshots (save "+save+")")
	}
	if fields["rdb_last_bgsave_status"] == "err" || fields["aof_last_write_status"] == "err" {
		s := symptom("persistence", Trouble, "the last write to disk failed")
		s.Next = []string{servers.NextStep("MISCONF")}
		return s
	}
	if len(kinds) == 0 {
		return symptom("persistence", Well, "nothing is written to disk")
	}
	s := symptom("persistence", Note, "it writes %s", strings.Join(kinds, " and "))
	s.Next = []string{"forks and fsyncs may fall into a window: measure on a server without them, or as in production, and say so"}
	return s
}
