package command_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
)

// run is a call of the command and what it said.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	code = command.Main(t.Context(), args, strings.NewReader(""), &out, &said)
	return code, out.String(), said.String()
}

// set has the server configured from outside.
func set(t *testing.T, server *redistest.Server, args ...any) {
	t.Helper()
	if err := server.Client(t).Do(t.Context(), args...).Err(); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}

// What a server refuses from the start is named before anything is measured, with what
// to do about it.
func TestRefusedFromTheStart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		prepare  [][]any
		user     string
		strategy string
		code     int
		says     []string
	}{
		{
			"no password",
			[][]any{{"CONFIG", "SET", "requirepass", "secret"}},
			"", "spin", command.ExitConfig,
			[]string{"NOAUTH", "next: the server asks for a password"},
		},
		{
			"wrong password", nil, "me:nonsense@", "spin", command.ExitConfig,
			[]string{"WRONGPASS", "next: user or password is wrong"},
		},
		{
			"no scripts",
			[][]any{{"ACL", "SETUSER", "me", "on", ">secret", "~*", "&*", "+@all", "-@scripting"}},
			"me:secret@", "spin,setnx",
			command.ExitConfig,
			[]string{"spin needs the right +", "next: the user may not run scripts"},
		},
		{
			"no channels",
			[][]any{{"ACL", "SETUSER", "me", "on", ">secret", "~*", "resetchannels", "+@all"}},
			"me:secret@", "pubsub,fair,spin",
			command.ExitConfig,
			[]string{
				"pubsub needs the right &redisson_lock__channel:*lockbench:*",
				"fair needs the right &", "lockbench list fair",
			},
		},
		{
			"full",
			[][]any{{"CONFIG", "SET", "maxmemory", "1"}},
			"", "spin", command.ExitConfig,
			[]string{"OOM", "next: the server has used up its maxmemory"},
		},
	} {
		server := redistest.Start(t)
		for _, args := range test.prepare {
			set(t, server, args...)
		}
		file := filepath.Join(t.TempDir(), "report.json")
		code, stdout, stderr := run(t, "-u", "redis://"+test.user+server.Addr, "-s", test.strategy, "-c", "4", "-d",
			"200ms", "-w", "0s", "--no-baselines", "-q", "-o", "json="+file)
		if code != test.code || stdout != "" {
			t.Errorf("%s: exit code %d, want %d\n%s%s", test.name, code, test.code, stdout, stderr)
		}
		for _, said := range test.says {
			if !strings.Contains(stderr, said) {
				t.Errorf("%s: stderr does not say %q:\n%s", test.name, said, stderr)
			}
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s: a report of nothing was written", test.name)
		}
	}
}

// What a server refuses in the middle of a run makes the run invalid, the report is
// complete, and the cause is named.
func TestRefusedInTheMiddle(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for _, test := range []struct {
		name, strategy string
		refuse         []any
		user           string
		code           int
		says           []string
	}{
		{
			"maxmemory", "spin",
			[]any{"CONFIG", "SET", "maxmemory", "1mb"},
			"", command.ExitInvalid,
			[]string{"OOM", "next: the server has used up its maxmemory"},
		},
		{
			"read-only", "spin",
			[]any{"REPLICAOF", "127.0.0.1", "1"},
			"", command.ExitInvalid,
			[]string{"READONLY", "next: this is a replica, or became one"},
		},
		{
			"no channels", "pubsub",
			[]any{"ACL", "SETUSER", "me", "resetchannels"},
			"me:secret@",
			command.ExitInvalid,
			[]string{"pubsub", "next: the user lacks a right"},
		},
	} {
		all.Go(func() {
			t.Run(test.name, func(t *testing.T) {
				server := redistest.Start(t)
				if test.user != "" {
					set(t, server, "ACL", "SETUSER", "me", "on", ">secret", "~*", "&*", "+@all")
				}
				file := filepath.Join(t.TempDir(), "report.json")
				if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
				running := make(chan struct{})
				var refusing sync.WaitGroup
				refusing.Go(func() { // once the clients are at it
					admin := server.Client(t)
					for calls(t, admin) < 500 {
						select {
						case <-running:
							return
						case <-time.After(5 * time.Millisecond):
						}
					}
					set(t, server, test.refuse...)
				})
				code, _, stderr := run(t, "-u", "redis://"+test.user+server.Addr, "-s", test.strategy, "-c", "4",
					"--instances", "4", "--hold", "1ms", "-d", "2s", "-w", "0s",
					"--no-baselines", "-q", "-o", "json="+file)
				close(running)
				refusing.Wait()
				if code != test.code {
					t.Errorf("exit code %d, want %d\n%s", code, test.code, stderr)
				}
				for _, said := range test.says {
					if !strings.Contains(stderr, said) {
						t.Errorf("stderr does not say %q:\n%s", said, stderr)
					}
				}
				var report results.Report
				content, err := os.ReadFile(file)
				if err == nil {
					err = json.Unmarshal(content, &report)
				}
				if err != nil || len(report.Runs) != 1 || report.Runs[0].Valid() || len(report.Runs[0].Errors) == 0 {
					t.Errorf("the report is %v, of %d bytes: %.200s", err, len(content), content)
				}
			})
		})
	}
	all.Wait()
}

// calls is how many scripts the clients have run.
func calls(t *testing.T, admin *redis.Client) int64 {
	t.Helper()
	info, err := admin.InfoMap(t.Context(), "stats").Result()
	if err != nil {
		return 0
	}
	var n int64
	for _, c := range info["Stats"]["total_commands_processed"] {
		n = n*10 + int64(c-'0')
	}
	return n
}

// What to do about an error of etcd's is said once, and not with Redis's addresses.
func TestTheNextStepIsEtcds(t *testing.T) {
	code, _, said := run(t, "-s", "etcd", "-u", "etcds://"+etcdtest.Start(t, 1).Endpoints[0])
	if code != command.ExitUnreachable || strings.Count(said, "etcd:// instead of etcds://") != 1 ||
		strings.Contains(said, "redis://") {
		t.Errorf("exit code %d, said: %s", code, said)
	}
}
