package all_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// conditions returns the versions of Redis, of Go and of the libraries. It reads the versions of the libraries from
// go.mod, because a test binary does not record them.
func conditions(t *testing.T) string {
	t.Helper()
	server, err := goredis.AskSoftware(t.Context(), redistest.Start(t).Client(t))
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := exec.CommandContext(t.Context(), "go", "list", "-m",
		"github.com/redis/go-redis/v9", "github.com/bsm/redislock", "github.com/go-redsync/redsync/v4",
		"github.com/redis/rueidis").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	on := []string{server.String(), runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH}
	return strings.Join(append(on, strings.Split(strings.TrimSpace(string(libraries)), "\n")...), ", ")
}

// marks maps each verdict to the cell that the table shows for it.
var marks = map[locktest.Verdict]string{
	locktest.Passed: "✓", locktest.Broken: "✗", locktest.Admitted: "!", locktest.NotTried: "–",
	locktest.NotJudged: "?",
}

func (c *column) mark(check locktest.Check) string {
	v, reached := c.verdicts[check.Name]
	switch {
	case check.Inapplicable(c.lock.Info()) != "":
		return ""
	case !reached:
		return "?"
	}
	return marks[v.Verdict]
}

// page returns the Markdown document. Its table has one column for each lock. on lists the versions of Redis, of Go and
// of the libraries.
func page(columns []*column, on string) string {
	b := new(strings.Builder)
	fmt.Fprintf(b, `# Conformance

Written by `+"`make conformance`"+`: every check of the suite [strategies/locktest](../../strategies/locktest) on every lock here, with stock options, on servers of its own.

✓ the promise was kept; ✗ it was broken; ! it was broken, and the lock's Info says so; – it could not be tried; ? no verdict; empty: the lock does not claim it, or has no such thing. How often one run of the suite finds a fault: [DETECTION.md](DETECTION.md).

On %s.

| check |`, on)
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.lock.Name())
	}
	b.WriteString("\n| --- |" + strings.Repeat(" :-: |", len(columns)) + "\n")
	for _, check := range locktest.Checks() {
		fmt.Fprintf(b, "| %s |", check.Name)
		for _, c := range columns {
			fmt.Fprintf(b, " %s |", c.mark(check))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## What each check proves\n\n")
	for _, check := range locktest.Checks() {
		fmt.Fprintf(b, "- **%s**: %s\n", check.Name, check.Proves)
	}
	b.WriteString("\n## What was found\n\nTo see one again: `LOCKBENCH_CONFORMANCE_OF=LOCK go test -v -count 1 -run " +
		"'^TestConformanceTable$//^CHECK$' ./strategies/all`, with `_` for each space of the check's name.\n\n")
	for _, c := range columns {
		c.findings(b)
	}
	return b.String()
}

// findings writes a list item for each check that the lock did not pass, with up to three failures. A last item has the
// number of applicable checks that were not reached.
func (c *column) findings(b *strings.Builder) {
	missing := 0
	for _, check := range locktest.Checks() {
		v, reached := c.verdicts[check.Name]
		if !reached && check.Inapplicable(c.lock.Info()) == "" {
			missing++
		}
		if !reached || v.Verdict == locktest.Passed || v.Verdict == locktest.NotApplicable {
			continue
		}
		fmt.Fprintf(b, "- **%s**, %s: %s", c.lock.Name(), check.Name, v.Verdict)
		if v.Because != "" {
			fmt.Fprintf(b, ", because %s", v.Because)
		}
		for _, f := range v.Failures[:min(3, len(v.Failures))] {
			fmt.Fprintf(b, "\n  - %s: %s", f.Promise, f.Seen)
		}
		b.WriteString("\n")
	}
	if missing > 0 {
		fmt.Fprintf(b, "- **%s**: no verdict of %d checks, which were not reached\n", c.lock.Name(), missing)
	}
}
