package doctor

import (
	"context"
	"errors"
	"strconv"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store/redis"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// ask makes requests of the first node, if the server is a Redis.
func (e examination) ask(ctx context.Context, do func(context.Context, goredis.Client) error) error {
	server, ok := e.server.(redis.Server)
	if !ok {
		return errors.ErrUnsupported
	}
	return server.Ask(ctx, 0, do)
}

// refused returns the rights that lockbench itself would use and does not have.
func (e examination) refused(ctx context.Context) (missing []string) {
	_ = e.ask(ctx, func(ctx context.Context, client goredis.Client) error {
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

// info returns a section of INFO; nil if the server does not give it.
func (e examination) info(ctx context.Context, section string) (fields map[string]string) {
	_ = e.ask(ctx, func(ctx context.Context, client goredis.Client) error {
		text, err := client.Info(ctx, section).Result()
		if err == nil {
			fields = replies.ParseInfo(text)
		}
		return err
	})
	return fields
}

func (e examination) memory(ctx context.Context, s *Symptom) {
	fields := e.info(ctx, "memory")
	if fields == nil {
		return
	}
	const mb = 1 << 20
	most, _ := strconv.ParseFloat(fields["maxmemory"], 64)
	now, _ := strconv.ParseFloat(fields["used_memory"], 64)
	policy := fields["maxmemory_policy"]
	s.say("%.1f MB used of a maxmemory of %.1f MB (0: no limit), %s", now/mb, most/mb, policy)
	if most > 0 && policy != "" && policy != "noeviction" {
		s.note("two clients may hold an evicted lock at once: keep locks on a server with noeviction")
	}
}

func (e examination) snapshots(ctx context.Context, s *Symptom) {
	var config map[string]string
	err := e.ask(ctx, func(ctx context.Context, client goredis.Client) (err error) {
		config, err = client.ConfigGet(ctx, "save").Result()
		return err
	})
	switch {
	case err != nil:
	case config["save"] == "":
		s.say("none are written")
	default:
		s.say("they are written (save %s)", untrusted.Printable(config["save"]))
		s.note("a fork may fall into a window: measure on a server without them, or as in production, and say so")
	}
}
