package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// If one of these variables is set, the test binary acts as another program. With servesEnv it is a server with a
// child. With heirsEnv, which names a directory, the server has twenty more children. With orphanEnv it is a lockbench
// that has started such a server and that the test kills.
const (
	servesEnv = "LOCKBENCH_TEST_SERVES"
	heirsEnv  = "LOCKBENCH_TEST_HEIRS"
	orphanEnv = "LOCKBENCH_TEST_ORPHAN"
)

func TestMain(m *testing.M) {
	switch os.Getenv(servesEnv) {
	case "parent":
		serve()
	case "child":
		for { // uses CPU time until it is killed
			for range 1000000 {
			}
		}
	case "heir": // reports that its parent has ended
		_, _ = io.ReadAll(os.Stdin)
		_ = os.WriteFile(filepath.Join(os.Getenv(heirsEnv), strconv.Itoa(os.Getpid())), nil, 0o600)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// serve is a server. It starts a child, listens on the address in its arguments, and sends every client the child's
// PID.
func serve() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		fmt.Println("taken:", err)
		os.Exit(1)
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), servesEnv+"=child")
	if err := child.Start(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if os.Getenv(heirsEnv) != "" {
		for range 20 {
			heir := exec.Command(os.Args[0])
			heir.Env = append(os.Environ(), servesEnv+"=heir")
			if _, err := heir.StdinPipe(); err != nil || heir.Start() != nil { // the pipe is closed when this process ends
				fmt.Println("no heir:", err)
				os.Exit(1)
			}
		}
	}
	for {
		conn, err := listener.Accept()
		if err == nil {
			fmt.Fprintln(conn, child.Process.Pid)
			_ = conn.Close()
		}
	}
}

// program returns the definition of a server whose program is this test binary.
func program(t *testing.T) Definition {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	ports, err := FreePorts(1)()
	must(t, err)
	return Definition{
		Name: "tested", Ports: ports,
		Process: Program{Path: self, Env: []string{servesEnv + "=parent"}},
		Args:    func(at Location) []string { return []string{fmt.Sprintf("%s:%d", at.Bind, at.Port)} },
		Ready: func(ctx context.Context, p Starting) error {
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				if p.Ended(ctx) {
					return errors.New(p.Log(ctx))
				}
				if _, err := childOf(p); err == nil {
					return nil
				}
			}
			return ctx.Err()
		},
	}
}

// childOf connects to the server and returns the PID of the server's child, which the server sends.
func childOf(p Starting) (int, error) {
	conn, err := net.DialTimeout("tcp", p.Addr(), 10*time.Second)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line))
}

func start(t *testing.T, of Definition) (*Process, int) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	p, err := Start(t.Context(), of)
	must(t, err)
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	child, err := childOf(p)
	must(t, err)
	return p, child
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// state returns the state of a process from /proc, or "" if it has ended.
func state(pid int) string {
	if fields := stat(pid); fields != nil {
		return fields[0]
	}
	return ""
}

// Kill, Pause and Resume of a server must also affect its children.
func TestControlsIncludeChildProcesses(t *testing.T) {
	p, child := start(t, program(t))
	ctx := t.Context()
	// A Ctrl-C in the terminal goes to the whole process group, so the server must be in a different one.
	if group, err := syscall.Getpgid(p.PID()); err != nil || group == syscall.Getpgrp() {
		t.Errorf("it is in our process group %d, %v", group, err)
	}
	before := *p.CPU()
	if used := *p.CPU(); math.Mod(used, 0.01) == 0 {
		t.Errorf("%v s is counted in ticks, of which many small processes have none", used)
	}
	poll.Until(t, "the child's processor time counts", func() bool { return *p.CPU() > before+0.05 })
	must(t, p.Pause(ctx))
	poll.Until(t, "both stand still", func() bool { return state(p.PID()) == "T" && state(child) == "T" })
	must(t, p.Resume(ctx))
	poll.Until(t, "both go on", func() bool { return state(p.PID()) != "T" && state(child) != "T" })
	noted, used := *p.CPU(), 0.0
	poll.Until(t, "it uses more than was noted",
		func() bool { used = *cpuOf(p.PID()); return used > noted+0.05 })
	must(t, p.Kill(ctx))
	killed := p.CPU()
	if killed == nil || *killed < used {
		t.Fatalf("killed, it has used %v s, and %v before", killed, used)
	}
	if state(child) != "" {
		t.Errorf("the child lives on, in state %s", state(child))
	}
	if err := p.Kill(ctx); err != nil || !p.Ended(ctx) {
		t.Errorf("killing it again: %v, it has ended: %v", err, p.Ended(ctx))
	}
	addr := p.Addr()
	if err := p.Again(ctx); err != nil || p.Addr() != addr {
		t.Errorf("again: %v, at %s instead of %s", err, p.Addr(), addr)
	}
	if now := p.CPU(); now == nil || *now < *killed {
		t.Errorf("started again, it has used %v s, and %v before", now, *killed)
	}
}

// When a server is killed, none of its children may notice the end of the parent. A child that noticed it could shut
// down in an orderly way and so pass its locks on to waiters, unlike in a crash.
func TestKillLeavesNoChildren(t *testing.T) {
	seen := t.TempDir()
	server := program(t)
	server.Process.Env = append(server.Process.Env, heirsEnv+"="+seen)
	p, _ := start(t, server)
	must(t, p.Kill(t.Context()))
	if entries, err := os.ReadDir(seen); err != nil || len(entries) > 0 {
		t.Errorf("%d children have seen their parent die: %v", len(entries), err)
	}
}

// While a killed server is down, FreePort must not return its ports and no outgoing connection may use them, so that
// the server can restart on them. After Close, the ports must be free.
func TestPortsStayReserved(t *testing.T) {
	kept := program(t)
	var err error
	kept.Ports, err = FreePorts(2)()
	must(t, err)
	p, _ := start(t, kept)
	must(t, p.Kill(t.Context()))
	for _, port := range kept.Ports {
		if err := Free(port); err == nil {
			t.Errorf("port %d is free while the server is down", port)
		}
		if listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			t.Errorf("the server cannot have port %d: %v", port, err)
		} else {
			_ = listener.Close()
		}
	}
	if err := p.Again(t.Context()); err != nil {
		t.Error(err)
	}
	must(t, p.Close(t.Context()))
	if err := Free(kept.Ports[1]); err != nil {
		t.Errorf("its second port is still kept: %v", err)
	}
}

// If a server cannot start, the error must contain the end of its log, and no files may be left.
func TestFailedStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	broken := program(t)
	broken.Args = func(Location) []string { return []string{"nowhere"} }
	if _, err := Start(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "missing port") {
		t.Errorf("%v: it does not carry the last words", err)
	}
	unprepared := program(t)
	unprepared.Process.Prepare = func(context.Context, *Process) error { return errors.New("no disk") }
	if _, err := Start(t.Context(), unprepared); err == nil ||
		!strings.Contains(err.Error(), "prepare tested: no disk") {
		t.Errorf("%v: it does not say what failed", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("leftovers: %v", left)
	}
}

func TestHelperOrphan(t *testing.T) {
	if os.Getenv(orphanEnv) == "" {
		t.Skip("it only runs as another test's subprocess")
	}
	p, err := Start(t.Context(), program(t))
	must(t, err)
	child, err := childOf(p)
	must(t, err)
	fmt.Printf("started %d %d\n", p.PID(), child)
	select {} // until it is killed
}

// The test kills a lockbench that has started a server. The server must end with it, and a sweep must remove the
// server's directory. The servers of a live lockbench must remain.
func TestSweep(t *testing.T) {
	mine, child := start(t, program(t))
	lockbench := exec.Command(os.Args[0], "-test.run=^TestHelperOrphan$")
	lockbench.Env = append(os.Environ(), orphanEnv+"=1")
	out, err := lockbench.StdoutPipe()
	must(t, err, lockbench.Start())
	var orphans [2]int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), "started %d %d", &orphans[0], &orphans[1]); n == 2 {
			break
		}
	}
	if swept := Sweep(t.Context()); len(swept.Directories) > 0 || state(orphans[0]) == "" {
		t.Errorf("swept %+v of a lockbench that lives", swept)
	}
	_ = lockbench.Process.Kill()
	_ = lockbench.Wait()
	defer endAll(orphans[1:])
	poll.Until(t, "its server has ended", func() bool { return state(orphans[0]) == "" })
	if swept := Sweep(t.Context()); len(swept.Directories) != 1 || len(swept.Skipped) > 0 {
		t.Errorf("swept %+v", swept)
	}
	if state(mine.PID()) == "" || state(child) == "" {
		t.Error("a server of this living process was swept with it")
	}
}

// If the program has no client for containers, SweepMachine must remove the directories and report once that it skipped
// the containers.
func TestSweepMachineWithoutAnEngine(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if swept := SweepMachine(t.Context()); len(swept.Skipped) != 1 ||
		!strings.HasPrefix(swept.Skipped[0], "containers: ") {
		t.Errorf("skipped %q", swept.Skipped)
	}
}

// A CPU time that is slightly smaller than the last one of the same process must not count as a restart. A CPU time of
// another process must count as a restart.
func TestCPUTime(t *testing.T) {
	t.Parallel()
	var used CPUTime
	if used.Read(0) != nil {
		t.Error("no process is known")
	}
	for _, r := range []struct {
		pid  int
		used float64
	}{{1, 5}, {1, 4.75}, {1, 5.25}, {2, 6}, {2, 6.5}, {3, 0.5}} {
		used.enter(r.pid, r.used)
	}
	if sum := used.Read(0); sum == nil || *sum != 12.25 {
		t.Errorf("it is %v", sum)
	}
}
