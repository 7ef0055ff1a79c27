package command_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// proxy starts a server that replies to PING, as a proxy in front of Redis would. To every other command it replies
// with the error refusal, in which %s stands for the command. If refusal is "", it closes the connection instead.
func proxy(t *testing.T, refusal string) string {
	t.Helper()
	return drive.Serve(t, func(conn net.Conn) {
		defer conn.Close()
		for r := bufio.NewReader(conn); ; {
			head, err := r.ReadString('\n')
			if err != nil {
				return
			}
			words := make([]string, 0, 8)
			count, _ := strconv.Atoi(strings.Trim(head, "*\r\n"))
			for range count {
				_, _ = r.ReadString('\n') // skip the length, because no argument contains a line break
				word, err := r.ReadString('\n')
				if err != nil {
					return
				}
				words = append(words, strings.TrimSpace(word))
			}
			if len(words) > 0 && strings.EqualFold(words[0], "ping") {
				fmt.Fprint(conn, "+PONG\r\n")
				continue
			}
			if refusal == "" || len(words) == 0 {
				return
			}
			fmt.Fprintf(conn, "-"+refusal+"\r\n", words[0])
		}
	})
}

// If the server lacks something that a run needs, the error must end with the next step.
func TestMissingServerFeatureHasNextStep(t *testing.T) {
	t.Parallel()
	limited := func() string { // a server with few connections, whose limit the user cannot read
		server := redistest.Start(t, "--maxclients", "30")
		set(t, server, "ACL", "SETUSER", "me", "on", ">secret", "~*", "&*", "+@all", "-info", "-config")
		return "me:secret@" + server.Addr
	}
	cluster := func(endpoints string) string {
		node := redistest.Start(t, "--cluster-enabled", "yes", "--cluster-preferred-endpoint-type", endpoints)
		set(t, node, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
		return node.Addr
	}
	without := func(name string) string { return redistest.Start(t, "--rename-command", name, "").Addr }
	const proxies = "give the address of the Redis behind it"
	for name, test := range map[string]struct {
		at    string
		flags []string
		code  int
		says  string // after next:
		not   string
	}{
		"maxclients that cannot be read": {
			limited(),
			[]string{"-s", "setnx", "-c", "60", "--instances", "1"},
			command.ExitUnreachable, "raise maxclients", "",
		},
		"maxclients that locks exceed": {
			limited(),
			[]string{"-s", "blpop", "-c", "25", "--instances", "1"},
			command.ExitFailure, "raise maxclients", "",
		},
		"unknown endpoints": {
			cluster("unknown-endpoint"), nil, command.ExitConfig,
			"set cluster-preferred-endpoint-type on its nodes to ip", "nil",
		},
		"hostnames that are not set": {
			cluster("hostname"), nil, command.ExitConfig, "cluster-announce-hostname", "",
		},
		"no CLIENT": {without("CLIENT"), nil, command.ExitConfig, "rename-command", ""},
		"no SCRIPT": {
			without("SCRIPT"), []string{"-s", "semaphore"}, command.ExitConfig, "rename-command", "needs the right",
		},
		"no EVALSHA": {
			without("EVALSHA"), []string{"-s", "pubsub"}, command.ExitConfig, "rename-command", "needs the right",
		},
		"no such database":   {limited() + "/99", nil, command.ExitConfig, "another number", ""},
		"a proxy like Redis": {proxy(t, "ERR unknown command '%s'"), nil, command.ExitConfig, proxies, ""},
		"a proxy":            {proxy(t, "ERR %s is not allowed"), nil, command.ExitConfig, proxies, ""},
		"a proxy, database":  {proxy(t, "ERR unsupported command %s") + "/1", nil, command.ExitConfig, proxies, ""},
		"twemproxy":          {proxy(t, ""), nil, command.ExitUnreachable, proxies, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := append(append([]string{}, shortly...), "-u", "redis://"+test.at)
			flags[len(shortly)-1] += filepath.Join(t.TempDir(), "report.json")
			code, _, said := run(t, append(flags, test.flags...)...)
			_, next, found := strings.Cut(said, "next: ")
			if code != test.code || !found || !strings.Contains(next, test.says) ||
				test.not != "" && strings.Contains(said, test.not) {
				t.Errorf("exit code %d, want %d and %q, said:\n%s", code, test.code, test.says, said)
			}
		})
	}
}

// If the Redis user lacks the right to delete keys, to list keys or to list clients, clean must end with ExitConfig and
// name the missing right.
func TestCleanFailsIfSomethingRemains(t *testing.T) {
	t.Parallel()
	const key = "lockbench:{deadbeef:1:0}"
	server := redistest.Start(t)
	for _, test := range []struct{ right, says string }{
		{"-del", "'del' command"}, {"-scan", "'scan' command"}, {"-client|list", "'client|list' command"},
	} {
		set(t, server, "SET", key, "x")
		set(t, server, "ACL", "SETUSER", "me", "reset", "on", ">secret", "~*", "&*", "+@all", test.right)
		code, stdout, stderr := run(t, "clean", "-u", "redis://me:secret@"+server.Addr)
		if code != command.ExitConfig || !strings.Contains(stderr, "leftovers of dead runs were not removed") ||
			!strings.Contains(stderr, test.says) || !strings.Contains(stderr, "next: ") ||
			strings.Contains(stdout, "nothing to remove") {
			t.Errorf("%s: exit code %d, said:\n%s%s", test.right, code, stdout, stderr)
		}
	}
	code, stdout, stderr := run(t, "clean", "-u", server.URL())
	if code != command.ExitOK || !strings.Contains(stdout, "removed 1 key of dead runs deadbeef") {
		t.Errorf("with all rights: exit code %d, said:\n%s%s", code, stdout, stderr)
	}
}

// clean without --redis needs no store, so its messages must not recommend importing the package of a store.
func TestCleanOfThisMachine(t *testing.T) {
	if code, stdout, stderr := run(t, "clean"); code != command.ExitOK || strings.Contains(stdout+stderr, "import") {
		t.Errorf("exit code %d, said:\n%s%s", code, stdout, stderr)
	}
}

// lockbench must accept input files that begin with a byte order mark, which some editors write.
func TestByteOrderMarks(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte("\ufeff"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	ok := func(args ...string) {
		t.Helper()
		if code, stdout, stderr := run(t, args...); code != command.ExitOK {
			t.Errorf("%q: exit code %d, said:\n%s%s", args, code, stdout, stderr)
		}
	}
	written := filepath.Join(dir, "written.json")
	local := []string{"-s", "local", "-c", "1", "-n", "1", "-w", "0s", "--no-baselines", "-q"}
	code, _, stderr := run(t, append(local, "-o", "json="+written)...)
	text, err := os.ReadFile(written)
	if err != nil {
		t.Fatalf("exit code %d, %v, said:\n%s", code, err, stderr)
	}
	report := file("report.json", string(text))
	ok("report", report)
	ok("report", report, "-o", filepath.Join(dir, "report.html"))
	ok("compare", report, written)
	ok(append(local, "--dry-run", "--hold", "file:"+file("holds.txt", "1ms\n2ms\n"))...)
	ok(append(local, "--dry-run", "--workload", file("workload.yaml", "hold: 1ms\n"))...)
	ok(append(local, "--dry-run", "-f", file("run.yaml", "hold: 1ms\n"))...)
	ok("claims", "--list", file("claim.yaml", "says: Two exclude\nruns:\n  one: -s spin\nexpect:\n"+
		"  - {what: overlaps, figure: one.overlaps, is: \"== 0\", total: true}\n"))
}
