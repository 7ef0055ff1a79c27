package command_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// process is a lockbench of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bufio.Reader
	said   strings.Builder
}

// start runs one of TestMain's commands.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := prepared(t, name, args...)
	p.run()
	return p
}

// prepared is one that is yet to run.
func prepared(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return &process{t: t, cmd: exec.Command(name, args...)}
}

func (p *process) run() {
	p.t.Helper()
	t := p.t
	// Who ignores SIGHUP, as below nohup, hands that on to the programs it starts, and who
	// listens to it does not.
	hungUp := make(chan os.Signal, 1)
	signal.Notify(hungUp, syscall.SIGHUP)
	defer signal.Stop(hungUp)
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stderr = bufio.NewReader(pipe)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(3*time.Minute, func() { _ = p.cmd.Process.Kill() })
	t.Cleanup(func() { hung.Stop() })
}

// await reads standard error up to a line that contains the text.
func (p *process) await(text string) {
	p.t.Helper()
	for {
		line, err := p.stderr.ReadString('\n')
		p.said.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			p.t.Fatalf("it never said %q but:\n%s", text, &p.said)
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// code waits for its end.
func (p *process) code() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.stderr)
	if err != nil {
		p.t.Error(err)
	}
	p.said.Write(rest)
	return exitCode(p.cmd.Wait())
}

// underWay waits until the clients of a run that has begun have released locks.
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

func TestFirstSignalWritesWhatThereIs(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			redis := redistest.Start(t)
			file := filepath.Join(t.TempDir(), "out.json")
			p := start(t, "lockbench", "-u", redis.URL(), "-s", "spin,blpop", "-c", "10", "-d", "40s", "-w", "0s", "--no-baselines", "-o", "json="+file)
			p.await("[1/2]")
			underWay(t, redis)
			p.signal(signal)
			if code := p.code(); code != "105" {
				t.Errorf("exit code %s", code)
			}
			if said := p.said.String(); !strings.Contains(said, "press again to stop at once") || strings.Contains(said, "[2/2]") {
				t.Errorf("it said:\n%s", said)
			}
			report := readReport(t, file)
			if !report.Interrupted || len(report.Runs) != 1 || !report.Runs[0].Partial || report.Runs[0].Speed.Acquisitions == 0 {
				t.Errorf("the report is not what had been measured: interrupted %v, %d runs", report.Interrupted, len(report.Runs))
			}
			keys, err := redis.Client(t).Keys(t.Context(), "*").Result()
			if err != nil || len(keys) > 0 {
				t.Errorf("left on the server: %v %v", keys, err)
			}
		})
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out.json")
	p := start(t, "author", "-s", "stubborn", "-c", "2", "-d", "40s", "-w", "0s", "--no-baselines", "-o", "json="+file)
	p.await("[1/1]")
	p.signal(syscall.SIGINT)
	p.await("press again to stop at once")
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != "130" {
		t.Errorf("exit code %s", code)
	}
	if !strings.Contains(p.said.String(), "stopped at once") {
		t.Errorf("it said:\n%s", &p.said)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) > 0 {
		t.Errorf("leftovers: %v %v", left, err)
	}
}

// What does not end soon after SIGTERM is stopped, by whatever it is held up.
func TestSIGTERMEndsEveryCommand(t *testing.T) {
	p := start(t, "hurried", "-s", "stubborn", "-c", "2", "-d", "40s", "-w", "0s", "--no-baselines")
	p.await("[1/1]")
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != "130" || !strings.Contains(p.said.String(), "stopped at once") {
		t.Errorf("exit code %s, said:\n%s", code, &p.said)
	}
}

// watched does something once a text is written.
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

func TestEndOfContextIsAFirstSignal(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout bytes.Buffer
	stderr := watched{text: "[1/1]", then: cancel}
	code := command.Main(ctx, []string{"-s", "local", "-c", "4", "-d", "40s", "-w", "0s", "--no-baselines", "-o", "json"}, nil, &stdout, &stderr)
	if code != command.ExitInterrupted {
		t.Errorf("exit code %d, said:\n%s", code, &stderr.Buffer)
	}
	if report, err := results.ReadJSON(&stdout); err != nil || !report.Interrupted {
		t.Errorf("no report of an interrupted run: %v", err)
	}
}

func TestRedisKilledInTheMiddle(t *testing.T) {
	redis := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "out.json")
	p := start(t, "lockbench", "-u", redis.URL(), "-s", "spin,blpop", "-c", "10", "--hold", "5ms", "-d", "2s", "-w", "0s", "--no-baselines", "-o", "json="+file)
	p.await("[2/2]")
	underWay(t, redis)
	redis.Kill()
	if code := p.code(); code != "113" {
		t.Errorf("exit code %s, said:\n%s", code, &p.said)
	}
	report := readReport(t, file)
	if !report.Unreachable || report.Error == "" || len(report.Runs) == 0 || !report.Runs[0].Valid() {
		t.Errorf("the first run or the error is missing: unreachable %v, %q, %d runs", report.Unreachable, report.Error, len(report.Runs))
	}
}

func TestUnreachableIsSaidSoon(t *testing.T) {
	// It accepts and never answers.
	var stdout, stderr bytes.Buffer
	before := time.Now()
	code := command.Main(t.Context(), []string{"-u", "redis://" + silent(t), "-s", "spin", "--no-baselines"}, nil, &stdout, &stderr)
	if code != command.ExitUnreachable {
		t.Errorf("exit code %d, said:\n%s", code, &stderr)
	}
	// It waits for 4 s; a client that waited as in a run would take 10.
	if took := time.Since(before); took > 9*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestSignalKeepsTheWholePairsOfAB(t *testing.T) {
	redis := redistest.Start(t)
	dir := t.TempDir()
	out, keep := filepath.Join(dir, "out.json"), filepath.Join(dir, "runs")
	p := start(t, "lockbench", "ab", "gate-base", "gate-dear", "-u", redis.URL(), "--pairs", "1000", "--keep", keep, "-o", "json="+out,
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
	if !c.Interrupted || c.Base.Reports < 2 || c.Base.Reports != c.Head.Reports || len(c.Strategies) != 1 {
		t.Errorf("what was measured is not kept: %+v", c)
	}
	keys, err := redis.Client(t).Keys(t.Context(), "*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("left on the server: %v %v", keys, err)
	}
}
