package command_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/apps/check"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func variant(t *testing.T, s strategies.Strategy) strategies.Variant {
	t.Helper()
	v, err := s.Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The test interrupts lockbench check when its check "cancelled at any moment" begins. The document must list the
// findings of the earlier checks, and the later checks as not run.
func TestInterruptedCheckListsMissingChecks(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	d, err := check.Run(ctx, check.Options{
		Strategy: variant(t, baselines.Local()),
		Progress: func(name string) {
			if name == "cancelled at any moment" {
				interrupt()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !d.Interrupted || len(d.With(check.NotRun)) == 0 || len(d.With(locktest.Passed)) == 0 {
		t.Errorf("interrupted %v, not run %q, passed %q", d.Interrupted, d.With(check.NotRun), d.With(locktest.Passed))
	}
	for i, c := range locktest.Checks() {
		if d.Checks[i].Check != c.Name || d.Checks[i].Verdict == "" || d.Checks[i].Verdict == locktest.Broken {
			t.Errorf("%+v, want %s", d.Checks[i], c.Name)
		}
	}
}

// The test simulates a failover by Sentinel: the servers close the clients' connections, and only a client that
// reconnects finds the new primary. The driver must reconnect.
func TestDriverFollowsFailover(t *testing.T) {
	t.Parallel()
	code, d, said := checked(t, append(only("failover"), exampleDriver(t,
		"            raise OSError(answer",
		"            self.redis = redis if answer else None\n            raise OSError(answer"))...)
	if code != 0 {
		t.Errorf("exit code %d, %s\n%+v", code, said, d.Checks)
	}
}

func TestServersFailOver(t *testing.T) {
	t.Parallel()
	spin, err := strategies.ParseVariants("spin") // setnx may delete another client's lock if its DEL arrives late
	if err != nil {
		t.Fatal(err)
	}
	of := check.Options{Strategy: spin[0], Only: []string{"failover"}}
	d, err := check.Run(t.Context(), of)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Checks) != 1 || d.Checks[0].Verdict != locktest.Passed {
		t.Errorf("%+v", d.Checks)
	}
}

// exampleDriver returns the strategy name of a modified copy of examples/driver/driver.py. changes lists strings in
// pairs: in the copy, the second string of each pair replaces the first.
func exampleDriver(t *testing.T, changes ...string) (name string) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no Python")
	}
	program, err := os.ReadFile("../examples/driver/driver.py")
	if err != nil {
		t.Fatal(err)
	}
	source := string(program)
	for change := range slices.Chunk(changes, 2) {
		if !strings.Contains(source, change[0]) {
			t.Fatalf("the example has no %q", change[0])
		}
		source = strings.Replace(source, change[0], change[1], 1)
	}
	file := filepath.Join(t.TempDir(), "mine")
	if err := os.WriteFile(file, []byte(source), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	return "exec:" + file
}

// checked runs lockbench check and returns its exit code, its document and its standard error.
func checked(t *testing.T, args ...string) (code int, d check.Document, said string) {
	t.Helper()
	code, out, said := run(t, append([]string{"check", "-q", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: exit code %d, %q, %s", err, code, out, said)
	}
	return code, d, said
}

func only(names ...string) (args []string) {
	for _, name := range names {
		args = append(args, "--only", name)
	}
	return args
}

// The example driver of docs/DRIVERS.md must pass the basic checks of every property that its lock claims.
func TestExampleDriverPassesChecks(t *testing.T) {
	t.Parallel()
	basic := only("acquire and release", "exclusion", "stranger", "try-lock", "cancelled wait", "dead holder",
		"late release")
	code, d, said := checked(t, append(basic, exampleDriver(t))...)
	if passed := d.With(locktest.Passed); code != 0 || len(passed) != len(d.Checks) {
		t.Errorf("exit code %d, passed %q, %s\n%+v", code, passed, said, d.Checks)
	}
}

// Each driver here lacks a call or behaves wrongly. lockbench check must report a limitation of the driver, not a
// broken promise of its lock.
func TestDriverLimitsAreNotBrokenPromises(t *testing.T) {
	t.Parallel()
	calls := `("run", "acquire", "release")`
	for name, test := range map[string]struct {
		changes []string
		outcome locktest.Verdict
		because string
	}{
		"it does not know acquire": {
			[]string{calls, `("run",)`},
			locktest.NotTried,
			"this driver cannot acquire on an idle server: the driver's response to acquire has neither a lease nor an error",
		},
		"it refuses acquire": {
			[]string{`        lock, limit = Lock(), now()`, `        raise OSError("no single calls")
        lock, limit = Lock(), now()`},
			locktest.NotTried, "this driver cannot acquire on an idle server: no single calls",
		},
		"it refuses release": {
			[]string{`held[ask["lease"]].release()`, `"no single calls"`},
			locktest.NotTried, "this driver cannot release on an idle server: release: no single calls",
		},
		"it does not open": {
			[]string{`    elif ask["do"] != "close":`, `    elif ask["do"] == "open":
        say(ask, error="it takes too long")
    elif ask["do"] != "close":`},
			locktest.NotJudged, "this driver cannot be opened: open: it takes too long",
		},
		"it ends at once": {
			[]string{`    if ask["do"] in ` + calls, `    if ask["do"] == "acquire":
        sys.exit("out of memory")
    if ask["do"] in ` + calls},
			locktest.NotJudged, "its driver failed: the driver ended (exit status 1): out of memory",
		},
		"it ends in the middle": {
			[]string{`    if ask["do"] in ` + calls, `    if ask["do"] == "release" and len(held) > 1:
        sys.exit("out of memory")
    if ask["do"] in ` + calls},
			locktest.NotJudged, "its driver failed: the driver ended (exit status 1): out of memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(only("acquire and release", "try-lock"), exampleDriver(t, test.changes...))
			code, d, said := checked(t, args...)
			if code != command.ExitInvalid {
				t.Errorf("exit code %d: %s", code, said)
			}
			if c := d.Checks[0]; c.Verdict != test.outcome || c.Because != test.because || len(c.Failures) > 0 {
				t.Errorf("%+v, want %s because %q", c, test.outcome, test.because)
			}
			if broken := d.With(locktest.Broken); len(broken) > 0 {
				t.Errorf("found broken: %q", broken)
			}
		})
	}
}

// The server resets each connection after one reply. The example driver of docs/DRIVERS.md must reconnect to release
// its lease.
func TestExampleDriverReconnects(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		for n := 0; ; n++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := conn.Read(make([]byte, 4096)); err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(conn, []string{"+OK\r\n", ":1\r\n"}[min(n, 1)])
			_ = conn.(*net.TCPConn).SetLinger(0) // Close then resets the connection
			_ = conn.Close()
		}
	}()
	cmd := exec.CommandContext(t.Context(), strings.TrimPrefix(exampleDriver(t), "exec:"))
	in, wrongIn := cmd.StdinPipe()
	out, wrongOut := cmd.StdoutPipe()
	if err := errors.Join(wrongIn, wrongOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewScanner(out)
	ask := func(question string) string {
		t.Helper()
		if _, err := io.WriteString(in, question+"\n"); err != nil || !answers.Scan() {
			t.Fatalf("%s: %v, %v", question, err, answers.Err())
		}
		return answers.Text()
	}
	ask(`{"id": 1, "do": "open", "prefix": "", "ttl_ms": 60000, "redis": ["redis://` + listener.Addr().String() + `"]}`)
	if got := ask(`{"id": 2, "do": "acquire", "key": "k"}`); !strings.Contains(got, `"lease": 2`) {
		t.Fatalf("the acquire: %s", got)
	}
	const release = `{"id": 3, "do": "release", "lease": 2}`
	if got := ask(release); strings.Contains(got, `"error": null`) {
		t.Errorf("the release on the connection that was reset: %s", got)
	}
	if got := ask(release); !strings.Contains(got, `"error": null`) {
		t.Errorf("the next release: %s", got)
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}
