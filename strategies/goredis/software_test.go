package goredis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// The cases are abridged replies of real servers to INFO and HELLO, from which SoftwareOf must find the name, the
// versions and the mode.
func TestSoftware(t *testing.T) {
	for _, test := range []struct {
		info  string
		hello any
		want  string // name and version, Redis's version, mode
	}{
		{
			"redis_version:7.0.15\r\nredis_mode:standalone\r\n",
			[]any{"server", "redis", "version", "7.0.15"},
			"Redis 7.0.15, 7.0.15 standalone",
		},
		{
			"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\nserver_mode:cluster\r\n",
			map[any]any{"server": "valkey", "version": "9.1.2", "proto": int64(3), "modules": []any{}},
			"Valkey 9.1.2, 7.2.4 cluster",
		},
		{"redict_version:7.3.6\r\nredict_mode:cluster\r\nredis_version:7.2.4\r\n", nil, "Redict 7.3.6, 7.2.4 cluster"},
		{
			"redis_version:6.3.4\r\nredis_mode:standalone\r\nexecutable:/usr/bin/keydb-server\r\n",
			[]any{"server", "redis"},
			"KeyDB 6.3.4, 6.3.4 standalone",
		},
		{"redis_version:7.4.0\r\ndragonfly_version:df-v1.27.1\r\n", nil, "Dragonfly 1.27.1, 7.4.0 "},
		// Of the last two servers, the first refuses INFO, and the second does not know HELLO.
		{"", []any{"server", "valkey", "version", "8.1.1", "mode", "cluster"}, "Valkey 8.1.1, 8.1.1 cluster"},
		{"redis_version:5.0.14\r\nredis_mode:cluster\r\n", nil, "Redis 5.0.14, 5.0.14 cluster"},
	} {
		s := goredis.SoftwareOf(replies.ParseInfo(test.info), goredis.Greeting(test.hello))
		if got := fmt.Sprintf("%v, %s %s", s, s.Redis, s.Mode); got != test.want {
			t.Errorf("%q with %v is taken for %s, want %s", test.info, test.hello, got, test.want)
		}
	}
}

// old is a hook that replaces the version in the reply to INFO with says. If says is "", it does not change the reply.
type old struct{ says string }

func (old) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o old) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if info, ok := cmd.(*redis.InfoCmd); ok && o.says != "" {
			info.SetVal(map[string]map[string]string{"Server": {"redis_version": o.says}})
			return nil
		}
		return next(ctx, cmd)
	}
}

func (old) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook { return next }

// TooOld must replace an error only if the server does not know a command or an option and is older than the lock
// needs. The new error must name both versions.
func TestTooOld(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	unknown := outside.Do(t.Context(), "sdance").Err()
	syntax := outside.Do(t.Context(), "set", "key", "value", "slowly").Err()
	forbidding := []any{"ACL", "SETUSER", "app", "on", "nopass", "~*", "+@all", "-info"}
	if err := outside.Do(t.Context(), forbidding...).Err(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		err     error
		version string // that the server reports; "" keeps the real one
		user    string
		needs   string
		want    string
	}{
		"a command":           {unknown, "6.2.14", "", "7.0", "a lock needs Redis 7.0 (dances), this is 6.2.14"},
		"an option":           {syntax, "6.0.16", "", "7.0", "a lock needs Redis 7.0 (dances), this is 6.0.16"},
		"new enough":          {unknown, "7.0.0", "", "7.0", unknown.Error()},
		"newer by two digits": {unknown, "10.0.1", "", "7.0", unknown.Error()},
		"another error":       {context.Canceled, "6.2.14", "", "7.0", context.Canceled.Error()},
		"INFO is forbidden":   {unknown, "", "app", "99.0", "a lock needs Redis 99.0 (dances), this is "},
	} {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: test.user, Password: "x"})
		defer func() { _ = client.Close() }()
		if test.user == "" {
			client = redis.NewClient(&redis.Options{Addr: server.Addr})
			defer func() { _ = client.Close() }()
			client.AddHook(old{test.version})
		}
		got := goredis.TooOld(t.Context(), client, test.err, "a lock",
			strategies.Since{Redis: test.needs, For: "dances"})
		if !strings.HasPrefix(got.Error(), test.want) || errors.Is(got, errors.ErrUnsupported) == (got == test.err) {
			t.Errorf("%s: %v, want %s", name, got, test.want)
		}
	}
}

// On Valkey, TooOld must compare the server's version with the version of Valkey that the lock needs. Its text must
// name the option with which the lock works on an older server.
func TestTooOldValkey(t *testing.T) {
	since := strategies.Since{Redis: "8.4", Valkey: "9.0", For: "dances", Instead: "steps=few"}
	for want, software := range map[string]goredis.Software{
		"": {Name: "valkey", Version: "9.1.2", Redis: "7.2.4"},
		"needs Redis 8.4 or Valkey 9.0 (dances), this is Valkey 8.1.4; set steps=few there": {
			Name: "valkey", Version: "8.1.4", Redis: "7.2.4",
		},
		"needs Redis 8.4 or Valkey 9.0 (dances), this is 8.0.6; set steps=few there": {
			Name: "redis", Version: "8.0.6", Redis: "8.0.6",
		},
	} {
		if got := software.TooOld(since); got != want {
			t.Errorf("%s: %q, want %q", software, got, want)
		}
	}
}
