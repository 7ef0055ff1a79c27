package command

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Signals end a command in up to three steps. A timeout replaces a missing signal:
//
//	first signal    cancels the context of the work, which then ends and writes what it measured
//	second signal   (or afterTerm after SIGTERM) abandons the work and writes only the completed runs
//	third signal    (or afterWriting) abandons this write, too

// afterTerm is how long work may take to end after SIGTERM. Docker sends SIGKILL 10 s after SIGTERM. Tests change it.
var afterTerm = 8 * time.Second

const (
	// oneStop is the time after the first signal during which further signals count as duplicates of it. GNU timeout
	// signals its child and then the child's process group; a terminal and a shell may likewise both signal the same
	// process.
	oneStop = 500 * time.Millisecond
	// afterWriting limits the time for writing the completed runs. Without a limit, a pipe whose reader has stopped
	// reading would block the exit.
	afterWriting = time.Second
)

// interruptible runs work and returns its exit code, or that of stop if signals force an end. The next run or lockbench
// clean removes servers and keys that abandoned work leaves behind. SIGHUP, which a closed terminal sends, counts as a
// signal unless nohup has set it to be ignored.
func (a *app) interruptible(ctx context.Context, work func(context.Context) int) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	// Ctrl-C may also end the reader of an output pipe. A write to the pipe would then end this process before it has
	// written the other outputs. After signal.Notify for SIGPIPE, the write returns an error instead.
	unread := make(chan os.Signal, 1)
	defer signal.Stop(unread)

	done := make(chan int, 1)
	go func() { done <- work(ctx) }()
	var first time.Time
	var over <-chan time.Time
	for {
		select {
		case code := <-done:
			return code
		case <-over:
			return a.stop(signals, done)
		case received := <-signals:
			if received == syscall.SIGTERM && over == nil {
				over = time.After(afterTerm)
			}
			switch {
			case first.IsZero():
				first = time.Now()
				signal.Notify(unread, syscall.SIGPIPE)
				cancel() // before say, which blocks if the reader of standard error has stopped
				a.say("stopping: lockbench writes what it has measured; a second signal stops it at once")
			case time.Since(first) >= oneStop:
				return a.stop(signals, done)
			}
		}
	}
}

// stop writes the completed runs, without the current one, and returns the exit code.
func (a *app) stop(signals <-chan os.Signal, done <-chan int) int {
	wrote := make(chan bool, 1)
	go func() { wrote <- a.ended.write() }()
	select {
	case ok := <-wrote:
		if ok {
			a.say("stopped at once: lockbench has written the runs that had ended; lockbench clean removes leftovers")
			return ExitInterrupted
		}
	case code := <-done: // work was already writing its document
		return code
	case <-signals:
	case <-time.After(afterWriting):
	}
	a.say("stopped at once, nothing is written; lockbench clean removes leftovers")
	return ExitStopped
}

// ended makes sure that a command writes its document once: either work writes the complete document at its end, or
// stop writes the completed runs.
type ended struct {
	mu    sync.Mutex
	soFar func() error // writes the completed runs; nil until the first run has completed
	begun bool         // a write has begun
}

// keep sets the function with which stop writes the completed runs.
func (e *ended) keep(write func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.soFar = write
}

// last writes the complete document unless stop has already written one.
func (e *ended) last(write func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun {
		return nil
	}
	e.begun = true
	return write()
}

// write writes the completed runs and returns whether a document has been written, by this call or an earlier one. It
// waits for a write in progress.
func (e *ended) write() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun || e.soFar == nil {
		return e.begun
	}
	e.begun = true
	return e.soFar() == nil
}
