package command

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A command ends in three steps, each with its own limit:
//
//	the first signal   cancels the context of the work, which then ends by itself and writes what was measured
//	a second signal    ends the command without waiting for its work, and so does the end of afterTerm;
//	                   the runs that had ended are written
//	a third signal     ends the command without waiting for that writing, and so does the end of afterWriting

// afterTerm is how long work may take to end after SIGTERM. Docker sends SIGKILL 10 s after SIGTERM. Tests change it.
var afterTerm = 8 * time.Second

const (
	// oneStop is the time in which further signals belong to the first one: GNU timeout signals its child and
	// then the child's process group, a terminal and a shell may do the same.
	oneStop = 500 * time.Millisecond
	// afterWriting is how long the writing of runs that had ended may take: a reader may have stopped reading.
	afterWriting = time.Second
)

// interruptible runs work, and returns its exit code or that of a forced end. The next run's sweep or lockbench clean
// removes what work leaves open. SIGHUP, of a closed terminal, counts too unless nohup ignores it.
func (a *app) interruptible(ctx context.Context, work func(context.Context) int) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	// The same signal may end the reader of our output. With Notify a write to it is an
	// error and does not end us: what was measured must still be written.
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
				cancel() // first: the reader of standard error may have stopped
				a.say("stopping: lockbench writes what it has measured; a second signal stops it at once")
			case time.Since(first) >= oneStop:
				return a.stop(signals, done)
			}
		}
	}
}

// stop writes the runs that have ended, without the one under way, and returns the exit code.
func (a *app) stop(signals <-chan os.Signal, done <-chan int) int {
	wrote := make(chan bool, 1)
	go func() { wrote <- a.ended.write() }()
	select {
	case ok := <-wrote:
		if ok {
			a.say("stopped at once: lockbench has written the runs that had ended; lockbench clean removes leftovers")
			return ExitInterrupted
		}
	case code := <-done: // it was just writing
		return code
	case <-signals:
	case <-time.After(afterWriting):
	}
	a.say("stopped at once, nothing is written; lockbench clean removes leftovers")
	return ExitStopped
}

// ended writes a command's document once: at its end by work itself, or before, without the run under way, by stop.
type ended struct {
	mu    sync.Mutex
	soFar func() error // writes what has ended; nil before anything has
	begun bool
}

// keep replaces what stop writes.
func (e *ended) keep(write func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.soFar = write
}

// last writes the complete document, unless stop has written an earlier one.
func (e *ended) last(write func() error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun {
		return nil
	}
	e.begun = true
	return write()
}

// write writes what has ended, and returns whether a document was written. It waits for a writing under way.
func (e *ended) write() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun || e.soFar == nil {
		return e.begun
	}
	e.begun = true
	return e.soFar() == nil
}
