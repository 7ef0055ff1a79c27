package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interruptible runs work so that the first signal cancels its context, and the
// second gives up waiting for it. What work had opened by then is left to the
// next run's sweep or to lockbench clean. A terminal that is closed (SIGHUP) is a
// signal like the others, unless nohup has it ignored.
func (a *app) interruptible(ctx context.Context, work func(context.Context) int) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	// Who reads what we say may be ended by the same signal. A write to him is then an
	// error, and not our end: what was measured is still to be written.
	unread := make(chan os.Signal, 1)
	defer signal.Stop(unread)

	done := make(chan int, 1)
	go func() { done <- work(ctx) }()
	for cancelled := false; ; cancelled = true {
		select {
		case code := <-done:
			return code
		case <-signals:
			if cancelled {
				a.say("stopped at once%s; lockbench clean removes leftovers", a.owed.missing())
				return ExitStopped
			}
			signal.Notify(unread, syscall.SIGPIPE)
			a.say("finishing: what has been measured is written; press again to stop at once")
			cancel()
		}
	}
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex
	to io.Writer
	// status is a line that is rewritten in place; it is taken away before
	// anything else is written and put back behind it.
	status string
}

// Write writes whole lines.
func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == "" {
		return l.to.Write(b)
	}
	if _, err := io.WriteString(l.to, eraseLine); err != nil {
		return 0, err
	}
	n, err := l.to.Write(b)
	if err == nil {
		_, err = io.WriteString(l.to, l.status)
	}
	return n, err
}

// eraseLine empties the terminal's line and returns to its start.
const eraseLine = "\r\x1b[K"

// rewrite replaces the line in place; "" takes it away.
func (l *locked) rewrite(status string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == "" && status == "" {
		return
	}
	l.status = status
	// A terminal that has gone away is no reason to stop measuring.
	_, _ = io.WriteString(l.to, eraseLine+status)
}
