package command_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
	"github.com/lockbench/lockbench/strategies"
)

// underWay waits until the server has executed a hundred scripts. The clients of a run release their locks with
// scripts, so the run is then under way.
func underWay(t *testing.T, redis *redistest.Server) {
	t.Helper()
	client := redis.Client(t)
	scripts := func() (calls int) {
		stats, err := client.Info(t.Context(), "commandstats").Result()
		if err != nil {
			t.Fatal(err)
		}
		if _, counts, found := strings.Cut(stats, "cmdstat_evalsha:calls="); found {
			_, _ = fmt.Sscan(strings.SplitN(counts, ",", 2)[0], &calls)
		}
		return calls
	}
	before := scripts()
	for deadline := time.Now().Add(time.Minute); scripts() < before+100; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody gets the lock")
		}
	}
}

func readReport(t *testing.T, file string) *results.Report {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	report, err := results.ReadJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Whatever ends a run early, the output file must contain its old content or a complete new report, and the exit code
// must show the cause.
func TestRunsThatEndEarly(t *testing.T) {
	const old = "the old one"
	send := func(s os.Signal) func(*process, *redistest.Server) {
		return func(p *process, _ *redistest.Server) { p.signal(s) }
	}
	interrupted := func(r *results.Report) bool {
		return r.Interrupted && len(r.Runs) == 1 && r.Runs[0].Partial
	}
	ended := func(r *results.Report) bool {
		return r.Interrupted && len(r.Runs) == 1 && !r.Runs[0].Partial && r.Runs[0].Strategy == "pubsub"
	}
	again := "a second signal stops it at once"
	second := func(p *process, _ *redistest.Server) {
		p.signal(syscall.SIGINT)
		p.await(again)
		time.Sleep(command.OneStop) // an earlier signal would count as a duplicate of the first
		p.signal(syscall.SIGTERM)
	}
	// twice sends SIGTERM two times, as GNU timeout does: it signals its child and then the child's process group.
	twice := func(p *process, _ *redistest.Server) {
		p.signal(syscall.SIGTERM)
		p.await(again)
		p.signal(syscall.SIGTERM)
	}
	for _, test := range []struct {
		name    string
		program string   // "" is lockbench
		flags   []string // nil means flags with which the first run lasts longer than the test
		at      string   // line of the progress at which end is called
		end     func(*process, *redistest.Server)
		code    string
		says    string
		whole   func(*results.Report) bool // checks the new report; nil if the old file must stay
	}{
		{"Ctrl-C", "", nil, "[1/2]", send(syscall.SIGINT), "105", again, interrupted},
		{"SIGTERM", "", nil, "[1/2]", send(syscall.SIGTERM), "105", again, interrupted},
		{"the terminal is closed", "", nil, "[1/2]", send(syscall.SIGHUP), "105", again, interrupted},
		{
			// stubborn never returns from Acquire, so the run cannot end before the second signal.
			"a second Ctrl-C", "author",
			[]string{"-s", "stubborn", "-d", "60s"},
			"[1/1]",
			second, "130", "stopped at once, nothing is written", nil,
		},
		{
			"a second Ctrl-C in the second run", "author",
			[]string{"-s", "stubborn,pubsub", "-d", "500ms", "--seed", "1"},
			"a stubborn client asks",
			second, "105", "stopped at once: lockbench has written the runs that had ended", ended,
		},
		{"two SIGTERMs of one stop", "", nil, "[1/2]", twice, "105", again, interrupted},
		{
			"too late after SIGTERM", "hurried",
			[]string{"-s", "stubborn", "-d", "60s"},
			"[1/1]", send(syscall.SIGTERM),
			"130", "stopped at once", nil,
		},
		{
			"too late after SIGTERM in the second run", "hurried",
			[]string{"-s", "stubborn,pubsub", "-d", "500ms", "--seed", "1"},
			"a stubborn client asks", send(syscall.SIGTERM),
			"105", "stopped at once: lockbench has written the runs that had ended", ended,
		},
		{"lockbench is killed", "", nil, "[1/2]", send(syscall.SIGKILL), "-1", "", nil},
		{
			"Redis is killed", "",
			[]string{"--hold", "5ms", "-d", "2s"},
			"[2/2]",
			func(_ *process, redis *redistest.Server) { redis.Kill() }, "113", "Redis unreachable",
			func(r *results.Report) bool { return r.Unreachable && r.Error != "" && !r.Runs[0].Partial },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			dir := t.TempDir()
			file := filepath.Join(dir, "out.json")
			if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{
				"-u", redis.URL(), "-s", "spin,blpop", "-d", "60s", "-c", "4", "--think", "5ms", "-w", "0s",
				"--no-baselines", "-o", "json=" + file,
			}
			if slices.Contains(test.flags, "-s") {
				args = slices.Delete(args, 2, 4)
			}
			p := start(t, cmp.Or(test.program, "lockbench"), append(args, test.flags...)...)
			p.await(test.at)
			if test.program == "" {
				underWay(t, redis)
			}
			test.end(p, redis)
			if code := p.code(); code != test.code || !strings.Contains(p.said.String(), test.says) {
				t.Errorf("exit code %s, said:\n%s", code, &p.said)
			}
			if test.at == "[1/2]" && strings.Contains(p.said.String(), "[2/2]") {
				t.Errorf("the next run began:\n%s", &p.said)
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*-tmp")); err != nil || len(left) > 0 {
				t.Errorf("leftovers: %v %v", left, err)
			}
			if test.whole == nil {
				if string(content) != old {
					t.Errorf("the file holds %q", content)
				}
				return
			}
			report, err := results.ReadJSON(bytes.NewReader(content))
			if err != nil || len(report.Runs) == 0 || !test.whole(report) || report.Runs[0].Speed.Acquisitions == 0 {
				t.Errorf("not a whole report of what was measured: %v, %+v", err, report)
			}
			if test.code != "105" {
				return
			}
			if keys, err := redis.Client(t).Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
				t.Errorf("left on the server: %v %v", keys, err)
			}
		})
	}
}

// A paused server refuses no connection, so clients notice the pause only when their timeout of 10 s expires. The run
// must end earlier, so no client may report a timeout.
func TestStoppedRedisEndsRunBeforeTimeout(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "out.json")
	p := start(t, "lockbench", "-u", redis.URL(), "-s", "spin,blpop", "-c", "10", "--think", "5ms", "-d", "60s",
		"-w", "0s",
		"--no-baselines", "-o", "json="+file)
	p.await("[1/2]")
	underWay(t, redis)
	redis.Pause()
	stopped := time.Now()
	p.await("the servers have stopped answering")
	t.Logf("noticed after %v", time.Since(stopped))
	if code := p.code(); code != "113" {
		t.Errorf("exit code %s, said:\n%s", code, &p.said)
	}
	t.Logf("ended after %v", time.Since(stopped))
	report := readReport(t, file)
	if len(report.Runs) != 1 || report.Runs[0].Valid() {
		t.Fatalf("runs %+v", report.Runs)
	}
	for _, e := range report.Runs[0].Errors {
		if strings.Contains(e.Error, "timeout") && !strings.HasPrefix(e.Error, "read the server's counters") {
			t.Errorf("a client noticed it: %d × %s", e.Count, e.Error)
		}
	}
}

// watched is a buffer. Once its content includes the field text, each write also calls the function in the field then.
type watched struct {
	bytes.Buffer
	text string
	then func()
}

func (w *watched) Write(p []byte) (int, error) {
	defer func() {
		if strings.Contains(w.String(), w.text) {
			w.then()
		}
	}()
	return w.Buffer.Write(p)
}

func TestContextEndActsAsFirstSignal(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := watched{text: "[1/1]", then: cancel}
	code := command.Main(ctx, []string{
		"-s", "local", "-c", "4", "-d", "40s", "-w", "0s", "--no-baselines", "-o",
		"json",
	}, nil, &stdout, &stderr)
	if code != command.ExitInterrupted {
		t.Errorf("exit code %d, said:\n%s", code, &stderr.Buffer)
	}
	if report, err := results.ReadJSON(&stdout); err != nil || !report.Interrupted {
		t.Errorf("no report of an interrupted run: %v", err)
	}
}

func TestSilentServerIsReportedSoon(t *testing.T) {
	// silent is a server that accepts connections but never replies. lockbench must report within 9 s that the server is
	// unreachable.
	var stdout, stderr bytes.Buffer
	before := time.Now()
	silent := drive.Serve(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	code := command.Main(t.Context(), []string{"-u", "redis://" + silent, "-s", "spin", "--no-baselines"}, nil,
		&stdout, &stderr)
	if code != command.ExitUnreachable {
		t.Errorf("exit code %d, said:\n%s", code, &stderr)
	}
	// The first check of the server ends after 4 s. A client of a run would wait for 10 s, so 9 s tell them apart.
	if took := time.Since(before); took > 9*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestSignalKeepsCompletePairsOfAB(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	dir := t.TempDir()
	out, keep := filepath.Join(dir, "out.json"), filepath.Join(dir, "runs")
	p := start(t, "lockbench", "ab", "gate-base", "gate-dear", "-u", redis.URL(), "--pairs", "1000", "--keep", keep,
		"-o", "json="+out,
		"--", "-s", "injected", "-c", "2", "-n", "100", "-w", "0s")
	p.await("[2/1000]")
	p.signal(syscall.SIGINT)
	if code := p.code(); code != "105" {
		t.Errorf("exit code %s, said:\n%s", code, &p.said)
	}
	content, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var c compare.Comparison
	if err := json.Unmarshal(content, &c); err != nil {
		t.Fatal(err)
	}
	if !c.Interrupted || c.Base.Reports < 2 || c.Base.Reports != c.Head.Reports ||
		len(c.Strategies) != 2 || c.Strategies[1].Results[0].Base.N != c.Base.Reports {
		t.Errorf("what was measured is not kept: %+v", c)
	}
	keys, err := redis.Client(t).Keys(t.Context(), "*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("left on the server: %v %v", keys, err)
	}
}

func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	code = command.Main(t.Context(), args, strings.NewReader(""), &out, &said)
	return code, out.String(), said.String()
}

func set(t *testing.T, server *redistest.Server, args ...any) {
	t.Helper()
	if err := server.Client(t).Do(t.Context(), args...).Err(); err != nil {
		t.Errorf("%v: %v", args, err)
	}
}

// If the server rejects commands from the start, lockbench must report the server's error and the next step before it
// measures anything.
func TestServerErrorsBeforeTheRun(t *testing.T) {
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
			[]string{"NOAUTH", "next: the server requires a password"},
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
			[]string{"spin needs the rights +script|load +eval +evalsha", "next: have an administrator run ACL SETUSER me +"},
		},
		{
			"no channels",
			[][]any{{"ACL", "SETUSER", "me", "on", ">secret", "~*", "resetchannels", "+@all"}},
			"me:secret@", "pubsub,fair,spin",
			command.ExitConfig,
			[]string{
				"pubsub needs the right &redisson_lock__channel:*lockbench:*",
				"fair needs the right &", "lockbench list NAME",
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

// If the server starts to reject commands during a run, the run must be invalid, and the report must be complete and
// name the cause.
func TestServerErrorsDuringTheRun(t *testing.T) {
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
			[]string{"READONLY", "next: the server is a replica, or has become one"},
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
				refusing.Go(func() { // after the clients have begun
					admin := server.Client(t)
					for calls(t, admin) < 200 {
						select {
						case <-running:
							return
						case <-time.After(5 * time.Millisecond):
						}
					}
					set(t, server, test.refuse...)
				})
				code, _, stderr := run(t, "-u", "redis://"+test.user+server.Addr, "-s", test.strategy, "-c", "4",
					"--instances", "4", "--hold", "5ms", "-d", "3s", "-w", "0s",
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

// calls returns the number of commands that the server has processed, or 0 if INFO returns an error.
func calls(t *testing.T, admin redis.UniversalClient) int64 {
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

// TestSoak runs every strategy for the time in LOCKBENCH_SOAK, with 500 and with 10,000 clients. No guarantee may
// break, and no key may be left behind.
func TestSoak(t *testing.T) {
	each := os.Getenv("LOCKBENCH_SOAK")
	if each == "" {
		t.Skip("takes minutes: make soak")
	}
	if _, err := time.ParseDuration(each); err != nil {
		t.Fatalf("LOCKBENCH_SOAK is how long to run each strategy: %v", err)
	}
	for _, s := range strategies.All() {
		for _, clients := range []int{500, 10_000} {
			t.Run(s.Info.Name+"/"+strconv.Itoa(clients), func(t *testing.T) {
				if s.Info.Nodes > 1 || s.Info.Store != "" {
					t.Skip("it needs several nodes, or another store")
				}
				soak(t, s.Info.Name, clients, each)
			})
		}
	}
}

func soak(t *testing.T, strategy string, clients int, each string) {
	redis := redistest.Start(t, "--maxclients", "30000")
	observer := redis.Client(t)
	var stdout, stderr bytes.Buffer
	// Run lockbench in a separate process, so that its memory can be measured.
	cmd := exec.CommandContext(t.Context(), "lockbench", "-q", "-u", redis.URL(), "-s", strategy,
		"-c", strconv.Itoa(clients), "-d", each, "--work", "counter", "--no-baselines", "-o", "json")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if code := exitCode(cmd.Run()); code != "0" {
		t.Fatalf("exit code %s, said:\n%s", code, &stderr)
	}
	report, err := results.ReadJSON(&stdout)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 1 {
		t.Fatalf("%d runs", len(report.Runs))
	}
	run := report.Runs[0]
	t.Logf("%.0f acquisitions/s, books off by %.3f %%, %d MB resident", run.Speed.PerSecond,
		run.TimeAccounting.WorstPercent, run.Generator.PeakRSS>>20)
	if *run.Safety.LeftoverCount > 0 {
		t.Errorf("leftovers: %v", run.Safety.Leftovers)
	}
	if keys, err := observer.DBSize(t.Context()).Result(); err != nil || keys > 0 {
		t.Errorf("%d keys left, %v", keys, err)
	}
	if list, err := observer.ClientList(t.Context()).Result(); err != nil ||
		bytes.Count([]byte(list), []byte("\n")) > 2 {
		t.Errorf("connections left, %v:\n%s", err, list)
	}
}
