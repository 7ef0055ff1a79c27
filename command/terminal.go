package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// locked is a writer that several goroutines may use at the same time.
type locked struct {
	mu sync.Mutex
	to io.Writer
	// status is the progress line at the bottom of the terminal. Write erases it before
	// its own bytes and prints it again after them.
	status string
}

// Write writes b, which must consist of whole lines.
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

// eraseLine erases the terminal's current line and moves the cursor to its start.
const eraseLine = "\r\x1b[K"

// rewrite replaces the status line; "" removes it.
func (l *locked) rewrite(status string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status == "" && status == "" {
		return
	}
	l.status = status
	// A closed terminal must not stop the measurement.
	_, _ = io.WriteString(l.to, eraseLine+status)
}

// progress shows the progress of a run on standard error. On a terminal, it rewrites one line in place. Elsewhere, it
// prints a new line for each strategy that starts.
type progress struct {
	out   *locked
	quiet bool
	width int // columns of the terminal; 0 if standard error is not a terminal

	mu     sync.Mutex
	latest lockbench.Progress
	at     time.Time // when latest.Remaining was reported

	stop chan struct{}
	done sync.WaitGroup
}

// newProgress starts the display of a run's progress. The caller must close it.
func (a *app) newProgress(quiet bool) *progress {
	p := &progress{out: a.stderr, quiet: quiet, stop: make(chan struct{})}
	if quiet {
		return p
	}
	if p.width = terminalWidth(a.stderr.to); p.width > 0 {
		p.done.Go(p.tick)
	}
	return p
}

// report displays a change of phase or the figures of the last second, as the engine reports them.
func (p *progress) report(now lockbench.Progress) {
	if p.quiet {
		return
	}
	p.mu.Lock()
	before := p.latest
	p.latest = now
	if p.at.IsZero() || now.Run != before.Run || now.Remaining != before.Remaining {
		p.at = time.Now()
	}
	p.mu.Unlock()
	if p.width > 0 {
		p.draw()
		return
	}
	if now.Phase == engine.PhaseGone {
		fmt.Fprintf(p.out, "%s: %s\n", title(now), now.Phase)
		return
	}
	if now.Run > 0 && (now.Run != before.Run || now.Strategy != before.Strategy) {
		fmt.Fprintln(p.out, title(now))
	}
}

// close ends the display and erases its line.
func (p *progress) close() {
	close(p.stop)
	p.done.Wait()
	p.out.rewrite("")
}

// tick updates the displayed remaining time every second, even if no report arrives.
func (p *progress) tick() {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-second.C:
			p.draw()
		}
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	now, left := p.latest, p.latest.Remaining-time.Since(p.at)
	p.mu.Unlock()
	if now.Phase == "" {
		return
	}
	p.out.rewrite(statusLine(now, left, p.width))
}

// statusLine describes the current phase of a run and, inside the window, the rate and the p99 wait of the last second.
// It cuts the line to the terminal's width, because a line that wraps cannot be rewritten.
func statusLine(now lockbench.Progress, left time.Duration, wide int) string {
	parts := []string{title(now), now.Phase, ""}
	if last := now.Last; last != nil && last.Seconds > 0 {
		rate := results.PerSecond.Format(float64(last.Acquisitions) / last.Seconds)
		parts[1] = rate + " · p99 " + last.WaitP99.String()
	}
	if left >= time.Second/2 {
		parts[2] = fmt.Sprintf("%v left", left.Round(time.Second))
	}
	line := untrusted.Printable(words.Dotted(parts...))
	if letters := []rune(line); len(letters) >= wide {
		line = string(letters[:wide-1])
	}
	return line
}

// title returns the number, strategy and round of the current run, or "" before the first run.
func title(p lockbench.Progress) string {
	if p.Run == 0 {
		return ""
	}
	return fmt.Sprintf("[%d/%d] %s round %d", p.Run, p.Runs, p.Strategy, p.Round)
}

// terminalWidth returns the number of columns of the terminal w, or 0 if w is not a terminal or cannot move its cursor.
// If the number is not known or below 20, it returns 80.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil || width < 20 {
		return 80
	}
	return width
}

// withoutTerminal is the width, in columns, of output to files and pipes.
const withoutTerminal = 80

// width returns the width of standard output in columns.
func (a *app) width() int { return width(a.stdout) }

// width returns the width of out in columns. If out is not a terminal, this is $COLUMNS, or 80 if that is not set.
func width(out io.Writer) int {
	wide := terminalWidth(out)
	if given, err := strconv.Atoi(os.Getenv("COLUMNS")); wide == 0 && err == nil && given >= 20 {
		wide = given
	}
	return cmp.Or(wide, withoutTerminal)
}

// colorful reports whether a writer is a terminal that may be coloured
// (https://no-color.org).
func colorful(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && terminalWidth(w) > 0
}
