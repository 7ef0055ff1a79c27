package command

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// afterTerm is how long work may take to end after SIGTERM: who sends it, such as a service
// manager, sends SIGKILL soon. Tests change it.
var afterTerm = 2 * time.Second

// interruptible runs work. The first signal cancels its context; the second one, or the
// end of afterTerm, returns without waiting for it. The next run's sweep or lockbench clean
// removes what work leaves open. SIGHUP, of a closed terminal, counts too unless nohup
// ignores it.
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
	stopped := func() int {
		a.say("stopped at once; lockbench clean removes leftovers")
		return ExitStopped
	}
	var over <-chan time.Time
	for cancelled := false; ; cancelled = true {
		select {
		case code := <-done:
			return code
		case <-over:
			return stopped()
		case received := <-signals:
			if cancelled {
				return stopped()
			}
			if received == syscall.SIGTERM {
				over = time.After(afterTerm)
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
	// status is a line that is rewritten in place. Write erases it, and writes it
	// again after its own bytes.
	status string
}

// Write writes b, which must be whole lines.
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

// rewrite replaces the status line; "" removes it.
func (l *locked) rewrite(status string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == "" && status == "" {
		return
	}
	l.status = status
	// A closed terminal must not stop the measuring.
	_, _ = io.WriteString(l.to, eraseLine+status)
}
