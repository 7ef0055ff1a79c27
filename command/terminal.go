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

// progress shows on standard error how far a run is: on a terminal as one line that it
// rewrites in place, elsewhere as a line when a strategy starts.
type progress struct {
	out   *locked
	quiet bool
	width int // of the terminal; 0 means that there is none

	mu     sync.Mutex
	latest lockbench.Progress
	at     time.Time // since when the latest Remaining counts

	stop chan struct{}
	done sync.WaitGroup
}

// newProgress starts the display; the caller must close it.
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

// report shows what the engine reports.
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

// tick updates the remaining time between reports.
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

// statusLine describes what a run does, and in its window the rate of the last second. A line that wraps could
// not be rewritten.
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

// title names the current run; "" before the first one.
func title(p lockbench.Progress) string {
	if p.Run == 0 {
		return ""
	}
	return fmt.Sprintf("[%d/%d] %s round %d", p.Run, p.Runs, p.Strategy, p.Round)
}

// terminalWidth returns the width of w's terminal; 0 if w is none, or if it cannot move
// its cursor.
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

// withoutTerminal is the width of pages for files and for readers that are no terminal.
const withoutTerminal = 80

// width returns how many columns standard output has.
func (a *app) width() int { return width(a.stdout) }

// width returns how many columns a writer has: those of the terminal, else $COLUMNS, else 80.
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
