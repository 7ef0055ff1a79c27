package command_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// shortly lists the flags for a run of 200 ms without warm-up or baselines.
var shortly = []string{
	"-c", "4", "--instances", "2", "--hold", "1ms", "-d", "200ms", "-w", "0s", "--no-baselines", "-q", "-o", "json=",
}

// Every single-node strategy must acquire its lock over each kind of connection: TLS with a client certificate, a
// password from a file or from a variable, and a primary found through its Sentinels.
func TestConnectionSettings(t *testing.T) {
	t.Parallel()
	cert, key := redistest.Certificate(t)
	free, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--user", "alice", "on", ">a@b+c/%41", "~*", "&*", "+@all")
	watched := redistest.StartWatched(t)
	password := filepath.Join(t.TempDir(), "password")
	place(t, password, "a@b+c/%41\n", 0o600)
	encrypted := "rediss://alice@127.0.0.1:" + port
	var names []string
	for _, s := range strategies.All() {
		if info := s.Info; info.OnRedis() && info.Nodes == 1 && !info.OnlyCounter {
			names = append(names, s.Info.Name)
		}
	}
	for _, test := range []struct {
		name  string
		env   string
		flags []string
		code  int
		says  string
	}{
		{"certificates and a password file", "", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key, "--redis-password-file", password,
		}, command.ExitOK, ""},
		{"a password in a variable", "LOCKBENCH_REDIS_PASSWORD=a@b+c/%41", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key,
		}, command.ExitOK, ""},
		{"redis-cli's variable", "REDISCLI_AUTH=a@b+c/%41", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key,
		}, command.ExitOK, ""},
		{
			"a Sentinel", "",
			[]string{"-u", "redis+sentinel://" + watched.Sentinel + "/" + redistest.MasterName},
			command.ExitOK, "",
		},
		{
			"no certificate", "",
			[]string{"-u", encrypted, "--ca-file", cert, "--redis-password-file", password},
			command.ExitUnreachable, "next: the server requires a client certificate",
		},
		{
			"no key", "",
			[]string{"-u", encrypted, "--ca-file", cert, "--cert", cert},
			command.ExitConfig,
			"--cert and --key need each other",
		},
		{
			"certificates without encryption", "",
			[]string{"-u", "127.0.0.1:1", "--cert", cert, "--key", key},
			command.ExitConfig, "--cert and --key need a rediss:// address",
		},
		{
			"no such password file", "",
			[]string{"-u", encrypted, "--redis-password-file", "nothing"},
			command.ExitConfig,
			"--redis-password-file: open nothing: no such file",
		},
		{"a wrong password", "LOCKBENCH_REDIS_PASSWORD=s3cr3t", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key,
		}, command.ExitConfig, "WRONGPASS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			flags := append(append([]string{}, shortly...), "-s", strings.Join(names, ","))
			flags[len(shortly)-1] += filepath.Join(t.TempDir(), "report.json")
			p := prepared(t, "lockbench", append(flags, test.flags...)...)
			p.cmd.Env = append(os.Environ(), test.env)
			p.run()
			if code := p.code(); code != strconv.Itoa(test.code) || !strings.Contains(p.said.String(), test.says) {
				t.Errorf("exit code %s, want %d and %q, said:\n%s", code, test.code, test.says, &p.said)
			}
			if strings.Contains(p.said.String(), "s3cr3t") {
				t.Errorf("it said the password:\n%s", &p.said)
			}
		})
	}
}
