package token_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// known is the server's own compare-and-delete; Scripts if it has none.
func known(t *testing.T, client redis.UniversalClient) token.Commands {
	t.Helper()
	for _, c := range []token.Commands{token.DelIfEq, token.DelEx} {
		if trial.Knows(t, client, string(c)) {
			return c
		}
	}
	return token.Scripts
}

// each runs a test with scripts, and with the server's own commands.
func each(t *testing.T, test func(t *testing.T, client redis.UniversalClient, by token.Commands)) {
	t.Helper()
	t.Run("scripts", func(t *testing.T) { test(t, redistest.Start(t).Node(t).Client, token.Scripts) })
	t.Run("native", func(t *testing.T) {
		client, by := native(t)
		test(t, client, by)
	})
}

// native is a server with the commands that it has. One that has none plays Redis 8.4.
func native(t *testing.T) (redis.UniversalClient, token.Commands) {
	t.Helper()
	client := redistest.Start(t).Node(t).Client
	if by := known(t, client); by != token.Scripts {
		return client, by
	}
	client.AddHook(redis84{})
	return client, token.DelEx
}

// redis84 answers DELEX and SET … IFEQ as the documentation of Redis 8.4 has them, on a
// server that does not know them. DELIFEQ stays unknown, as it is there.
type redis84 struct{ noSet, setsAnyway bool }

func (redis84) DialHook(next redis.DialHook) redis.DialHook { return next }
func (redis84) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (p redis84) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	const equal = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call(%s) end return %s`
	del, set := fmt.Sprintf(equal, "'DEL', KEYS[1]", "0"), fmt.Sprintf(equal, "'SET', KEYS[1], ARGV[2], 'PX', ARGV[3]", "false")
	if p.setsAnyway {
		set = `return redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])`
	}
	return func(ctx context.Context, cmd redis.Cmder) error {
		w := cmd.Args()
		var played *redis.Cmd
		switch {
		case w[0] == "delex" && len(w) == 4 && w[2] == "ifeq": // DELEX key IFEQ value
			played = redis.NewCmd(ctx, "eval", del, 1, w[1], w[3])
		case w[0] == "set" && p.noSet:
			played = redis.NewCmd(ctx, "set", w[1], w[2], "unknown")
		case w[0] == "set" && len(w) == 7 && w[3] == "ifeq" && w[5] == "px": // SET key value IFEQ value PX ms
			played = redis.NewCmd(ctx, "eval", set, 1, w[1], w[4], w[2], w[6])
		default:
			return next(ctx, cmd)
		}
		err := next(ctx, played)
		if once, ok := cmd.(indeterminate.Once); ok {
			cmd = once.Cmder
		}
		cmd.(*redis.Cmd).SetVal(played.Val())
		return err
	}
}

// What is found is what the server has, and nothing changes on it.
func TestFindNative(t *testing.T) {
	client, by := native(t)
	for _, held := range []string{"", "somebody's"} {
		if held != "" {
			client.Set(t.Context(), "key", held, 0)
		}
		found, err := token.FindNative(t.Context(), client, "key", "nobody's")
		if err != nil || found != by {
			t.Errorf("found %q, %v, want %q", found, err, by)
		}
		if got := client.Get(t.Context(), "key").Val(); got != held {
			t.Errorf("the key holds %q, and held %q", got, held)
		}
	}
}

// A server that has none of them, or only half, is not to be used, and says so.
func TestNoNative(t *testing.T) {
	for name, test := range map[string]struct {
		play *redis84
		want []string
	}{
		"neither":                {nil, []string{"neither", "DELEX … IFEQ (Redis 8.4)", "DELIFEQ (Valkey 9)"}},
		"no SET IFEQ":            {&redis84{noSet: true}, []string{"has DELEX", "no SET … IFEQ"}},
		"a SET that sets anyway": {&redis84{setsAnyway: true}, []string{"has DELEX", "no SET … IFEQ"}},
	} {
		client := redistest.Start(t).Node(t).Client
		if by := known(t, client); by != token.Scripts {
			t.Skipf("this server has %s", by)
		}
		if test.play != nil {
			client.AddHook(test.play)
		}
		found, err := token.FindNative(t.Context(), client, "key", "nobody's")
		if found != token.Scripts || !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: found %q, %v, want ErrUnsupported", name, found, err)
			continue
		}
		if slices.ContainsFunc(test.want, func(s string) bool { return !strings.Contains(err.Error(), s) }) {
			t.Errorf("%s: %v does not name %q", name, err, test.want)
		}
	}
}

// What a server refuses for another reason is not taken for a command that is not there.
func TestFindNativeIsRefused(t *testing.T) {
	client, _ := native(t)
	if err := client.Do(t.Context(), "ACL", "SETUSER", "default", "resetkeys").Err(); err != nil {
		t.Fatal(err)
	}
	found, err := token.FindNative(t.Context(), client, "key", "nobody's")
	if found != token.Scripts || !redis.HasErrorPrefix(err, "NOPERM") || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without a right to keys it found %q, %v", found, err)
	}
}
