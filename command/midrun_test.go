package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
)

// Whatever ends a run in its middle, the file is the old one or a whole new one, and the
// exit code says what it was.
func TestWhatEndsARunInItsMiddle(t *testing.T) {
	const old = "the old one"
	second := func(p *process, _ *redistest.Server) {
		p.signal(syscall.SIGINT)
		p.await("press again to stop at once")
		p.signal(syscall.SIGINT)
	}
	for _, test := range []struct {
		name    string
		program string // "" is lockbench
		end     func(*process, *redistest.Server)
		code    string
		says    string
		whole   func(*results.Report) bool // nil where the old one stays
	}{
		{"Ctrl-C", "", func(p *process, _ *redistest.Server) { p.signal(syscall.SIGINT) }, "105", "interrupted", func(r *results.Report) bool { return r.Interrupted }},
		{"SIGTERM", "", func(p *process, _ *redistest.Server) { p.signal(syscall.SIGTERM) }, "105", "interrupted", func(r *results.Report) bool { return r.Interrupted }},
		{"the terminal is closed", "", func(p *process, _ *redistest.Server) { p.signal(syscall.SIGHUP) }, "105", "interrupted", func(r *results.Report) bool { return r.Interrupted }},
		{"a second Ctrl-C", "author", second, "130", "stopped at once", nil},
		{"lockbench is killed", "", func(p *process, _ *redistest.Server) { p.signal(syscall.SIGKILL) }, "-1", "", nil},
		{"Redis is killed", "", func(_ *process, redis *redistest.Server) { redis.Kill() }, "113", "Redis unreachable", func(r *results.Report) bool { return r.Unreachable }},
		{"Redis is stopped", "", func(_ *process, redis *redistest.Server) { redis.Pause() }, "113", "Redis unreachable", func(r *results.Report) bool { return r.Unreachable }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			dir := t.TempDir()
			file := filepath.Join(dir, "out.json")
			if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			program, strategy := "lockbench", "spin"
			if test.program != "" {
				program, strategy = test.program, "stubborn" // which never comes back, so that the second signal is in time
			}
			p := start(t, program, "-u", redis.URL(), "-s", strategy, "-c", "10", "-d", "60s", "-w", "0s", "--no-baselines", "-o", "json="+file)
			p.await("[1/1]")
			if test.program == "" {
				underWay(t, redis)
			}
			test.end(p, redis)
			if code := p.code(); code != test.code || !strings.Contains(p.said.String(), test.says) {
				t.Errorf("exit code %s, said:\n%s", code, &p.said)
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if test.whole == nil {
				if string(content) != old {
					t.Errorf("the file holds %q", content)
				}
				return
			}
			report, err := results.ReadJSON(bytes.NewReader(content))
			if err != nil || !test.whole(report) || len(report.Runs) != 1 || report.Runs[0].Speed.Acquisitions == 0 {
				t.Errorf("not a whole report of what was measured: %v, %+v", err, report)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
				t.Errorf("leftovers: %v %v", left, err)
			}
		})
	}
}

// A server that stands still refuses nothing, and clients would wait for it until they
// time out after 10 s: it is found silent before.
func TestAStoppedRedisIsNoticedBeforeClientsTimeOut(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "out.json")
	p := start(t, "lockbench", "-u", redis.URL(), "-s", "spin,blpop", "-c", "10", "-d", "60s", "-w", "0s", "--no-baselines", "-o", "json="+file)
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
			t.Errorf("a client found it out: %d × %s", e.Count, e.Error)
		}
	}
}
