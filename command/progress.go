package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/engine"
)

// progress shows on standard error how far a run is: on a terminal as one line that it
// rewrites in place, elsewhere as a line when a strategy starts.
type progress struct {
	out   *locked
	quiet bool
	width int // of the terminal; 0 means that there is none

	mu     sync.Mutex
	latest lockbench.Progress
	at     time.Time // of the latest

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
	p.latest, p.at = now, time.Now()
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
	line := title(now)
	if line != "" {
		line += " · "
	}
	line += now.Phase
	if left >= time.Second/2 {
		line += fmt.Sprintf(" · %v left", left.Round(time.Second))
	}
	// A line that wraps could not be rewritten.
	if letters := []rune(line); len(letters) >= p.width {
		line = string(letters[:p.width-1])
	}
	p.out.rewrite(line)
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

// colorful says whether a writer is a terminal that may be coloured
// (https://no-color.org).
func colorful(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && terminalWidth(w) > 0
}
