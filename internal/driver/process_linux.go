package driver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time by CLOCK_MONOTONIC in nanoseconds.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // every Linux has it
	return now.Nano()
}

// process is a program in a separate process group, with pipes to its standard input and output.
type process struct {
	cmd    *exec.Cmd
	in     *os.File // the write end of its standard input
	out    *os.File // the read end of its standard output
	log    tail     // the last bytes of its standard error
	exited chan struct{}
}

// start starts a program with only the variables that environment returns. The kernel kills the program when lockbench
// ends. When the program ends, a goroutine kills the program's descendants.
func start(words []string) (*process, error) {
	p := &process{cmd: exec.Command(words[0], words[1:]...), exited: make(chan struct{})}
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close(), in.Close())
	}
	p.in, p.out = in, out
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, &p.log
	mark := newMark()
	p.cmd.Env = environment(mark)
	p.cmd.WaitDelay = closePatience // another process may have inherited its standard error
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() { // ends with the program, which kill ends
		runtime.LockOSThread() // for Pdeathsig, the parent is the thread that starts the program
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		_, _ = stdin.Close(), stdout.Close()
		started <- err
		if err != nil {
			return
		}
		var info unix.Siginfo
		for unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
		}
		p.kill() // before Wait, because after it another process group may get this ID
		killMarked(mark)
		_ = p.cmd.Wait()
	}()
	if err := <-started; err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	return p, nil
}

// kill sends SIGKILL to the program's process group unless the program has ended.
func (p *process) kill() {
	if p.pid() != 0 {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// end closes the program's standard input, kills the program if it has not exited after patience, and waits for its
// exit.
func (p *process) end(patience time.Duration) {
	_ = p.in.Close()
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.kill()
		<-p.exited
	}
	_ = p.out.Close()
}

// pid returns the process ID; 0 once the program has ended, because another process may have the ID by then.
func (p *process) pid() int {
	select {
	case <-p.exited:
		return 0
	default:
		return p.cmd.Process.Pid
	}
}

// cpu returns the CPU time, in seconds, that all threads of the program have used, excluding its child processes; nil
// if it is not known.
func (p *process) cpu() *float64 {
	const scheduled = 2 // clock_getcpuclockid(3): a clock's ID is the inverted process ID and the kind of clock
	var used unix.Timespec
	if pid := p.pid(); pid == 0 || unix.ClockGettime(int32(^pid<<3|scheduled), &used) != nil {
		return nil
	}
	return new(float64(used.Nano()) / 1e9)
}

// ending waits for the program to exit and returns how it ended. If the program has closed its standard output but has
// not exited after closePatience, ending kills it.
func (p *process) ending() string {
	select {
	case <-p.exited:
	case <-time.After(closePatience):
		p.kill()
		<-p.exited
	}
	return fmt.Sprintf("the driver ended (%v)", p.cmd.ProcessState)
}

// tail is an io.Writer that keeps the last longestTail bytes.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// longestTail is the number of bytes of a driver's standard error that lockbench keeps. The last line becomes part of
// the error if the driver fails.
const longestTail = 4 << 10

func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-longestTail):]
	return len(text), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
