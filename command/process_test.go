package command_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is lockbench or another program in a separate process. A test can signal it and wait for its messages.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr *bufio.Reader
	said   strings.Builder
}

// start starts a process of the named program, which is lockbench or another program that TestMain registers.
func start(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := prepared(t, name, args...)
	p.run()
	return p
}

// prepared returns a process that has not started, so that the test can change cmd. The test must start it with run.
func prepared(t *testing.T, name string, args ...string) *process {
	t.Helper()
	return &process{t: t, cmd: exec.Command(name, args...)}
}

func (p *process) run() {
	p.t.Helper()
	t := p.t
	// Under nohup this process ignores SIGHUP, and its child would inherit that. A handler in this process makes the child
	// start with the default action.
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

// code waits until the process exits and returns its exit code.
func (p *process) code() string {
	p.t.Helper()
	rest, err := io.ReadAll(p.stderr)
	if err != nil {
		p.t.Error(err)
	}
	p.said.Write(rest)
	return exitCode(p.cmd.Wait())
}
