package docs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/apps/check"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// TestLanguages writes docs/evidence/LANGUAGES.md from the reports that "make languages" writes to bin/languages.
func TestLanguages(t *testing.T) {
	root := os.Getenv("LOCKBENCH_LANGUAGES")
	if root == "" {
		t.Skip("make languages writes the page")
	}
	p := driverFigures{}
	for _, file := range found(t, root, "run-*.json") {
		report, err := results.ReadJSON(strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		p.add(report)
	}
	var checked []*check.Document
	for _, file := range found(t, root, "check-*.json") {
		d := &check.Document{}
		if err := json.Unmarshal([]byte(file), d); err != nil {
			t.Fatal(err)
		}
		checked = append(checked, d)
	}
	text := p.String() + conformance(checked)
	if err := os.WriteFile(filepath.Join(root, "docs", "evidence", "LANGUAGES.md"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func found(t *testing.T, root, pattern string) (texts []string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(root, "bin", "languages", pattern))
	if len(files) == 0 {
		t.Fatalf("there is no bin/languages/%s: make languages", pattern)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// driverFigures collects the reports of all drivers for the table, by driver and number of clients.
type driverFigures struct {
	drivers []string // in the order of the table
	cells   map[string][]cell
	reports []*results.Report
}

// cell holds the figures of one row of the table: one driver with one number of clients.
type cell struct {
	clients int
	results.Summary
}

func (p *driverFigures) add(report *results.Report) {
	if p.cells == nil {
		p.cells = map[string][]cell{}
	}
	p.reports = append(p.reports, report)
	for _, s := range report.Summaries() {
		if !slices.Contains(p.drivers, s.Name) {
			p.drivers = append(p.drivers, s.Name)
		}
		p.cells[s.Name] = append(p.cells[s.Name], cell{report.WorkloadOf(s.Runs[0]).Clients, s})
		slices.SortFunc(p.cells[s.Name], func(a, b cell) int { return cmp.Compare(a.clients, b.clients) })
	}
}

// columns lists the figures in the table: the title of each column, and the metric that it shows.
var columns = []struct{ title, metric string }{
	{"acquisitions/s", "acq_per_s"},
	{"wait p50", "wait_p50"},
	{"wait p99", "wait_p99"},
	{"commands/acq.", "commands_per_acq"},
	{"starved", "starved"},
	{"driver CPU/acq.", "driver_cpu_per_acq"},
}

func (p *driverFigures) String() string {
	b := new(strings.Builder)
	first := p.reports[0]
	w := first.Workload
	fmt.Fprintf(b, `# Locks of other languages, measured

Written by `+"`make languages`"+`: each driver of [DRIVERS.md](../DRIVERS.md) with 1, 10 and 100 clients on one key, in two processes, hold %v, for %v after a warm-up of %v. `+
		"`exec:go pubsub`"+` is a lock of lockbench behind a driver. `+
		"The noop drivers, which do nothing, show the overhead of a driver in each language."+`

On %s %s, %s, %d CPUs, %s. `, w.Hold, w.Duration, w.Warmup, first.Redis.Name, first.Redis.Version,
		first.Environment.CPUModel, first.Environment.CPUs,
		noise(p.reports, ", and repeat the checks whose verdicts mention 20 s or 1m0s"))
	b.WriteString("A client is starved if it made no acquisition in the time in which every client could have made two." +
		"\n\n| driver | clients |")
	for _, c := range columns {
		fmt.Fprintf(b, " %s |", c.title)
	}
	b.WriteString("\n| --- | --: |" + strings.Repeat(" --: |", len(columns)) + "\n")
	for _, driver := range p.drivers {
		for i, c := range p.cells[driver] {
			name := ""
			if i == 0 {
				name = "`" + driver + "`"
			}
			fmt.Fprintf(b, "| %s | %d |", name, c.clients)
			for _, column := range columns {
				fmt.Fprintf(b, " %s |", c.Brief(results.MustMetric(column.metric)))
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n## What stands out\n\n")
	for _, driver := range p.drivers {
		if found := standsOut(p.cells[driver]); len(found) > 0 {
			if why := causes[driver]; why != "" {
				found = append(found, why)
			}
			fmt.Fprintf(b, "- `%s`: %s.\n", driver, strings.Join(found, "; "))
		}
	}
	return b.String()
}

// causes maps a driver to the cause of its outliers, where the cause is evident from the library's code.
var causes = map[string]string{
	"exec:redis-py": "a client that finds the lock held sleeps for 100 ms, so the client that has just released it " +
		"usually acquires it again first",
	"exec:redlock 5": "the locks of an attempt without a majority are released only after the last attempt has " +
		"failed, and with `retryCount: -1`, which waits without limit, there is no last attempt: clients that " +
		"have split the nodes among them wait for the TTL",
}

// noise returns a relative clause about the machine, which says in how many runs another program was busy. If there was
// such a run, the clause ends with the text caution.
func noise(reports []*results.Report, caution string) string {
	runs, noisy := 0, 0
	for _, report := range reports {
		for _, run := range report.Runs {
			runs++
			if run.MachineBound() {
				noisy++
			}
		}
	}
	if noisy == 0 {
		return fmt.Sprintf("on which no other program was busy in any of %d runs", runs)
	}
	return fmt.Sprintf("**on which another program was busy in %d of %d runs: trust the counts, not the times%s**", noisy,
		runs, caution)
}

// standsOut describes each remarkable figure of a driver, such as starved clients or a throughput that collapses with
// many clients. cells must be in ascending order of clients.
func standsOut(cells []cell) (found []string) {
	of := func(c cell, metric string) float64 {
		f := c.Figure(results.MustMetric(metric))
		if f == nil {
			return 0
		}
		return f.Value
	}
	alone, most := cells[0], cells[len(cells)-1]
	for _, c := range cells {
		if !c.Runs[0].Usable() {
			found = append(found, fmt.Sprintf("with %d clients no usable run: %s", c.clients,
				append(c.Runs[0].Invalid.Texts(), c.Runs[0].Failure)[0]))
			continue
		}
		if broken := c.Runs[0].Safety.Broken; len(broken) > 0 {
			found = append(found, fmt.Sprintf("with %d clients it broke its claim of %s", c.clients,
				broken))
		}
		if n := of(c, "starved"); n > 0 {
			found = append(found, fmt.Sprintf("%.0f of %d clients starved", n, c.clients))
		}
	}
	if !most.Runs[0].Usable() {
		return found
	}
	bound := func(metric string) bool {
		f := most.Figure(results.MustMetric(metric))
		return f != nil && f.AtLeast
	}
	if p50, p99 := of(most, "wait_p50"), of(most, "wait_p99"); p50 > 0 && p99 > 100*p50 && !bound("wait_p50") {
		least := ""
		if bound("wait_p99") {
			least = "at least "
		}
		found = append(found, fmt.Sprintf("the p99 of the wait is %s%.0f times its p50 with %d clients", least, p99/p50,
			most.clients))
	}
	if one, many := of(alone, "acq_per_s"), of(most, "acq_per_s"); many < one/2 {
		found = append(found, fmt.Sprintf("%.0f acquisitions/s with %d clients, %.0f with %d", many, most.clients, one,
			alone.clients))
	}
	if one, many := of(alone, "commands_per_acq"), of(most, "commands_per_acq"); many > 3*one {
		found = append(found, fmt.Sprintf("%.0f commands per acquisition with %d clients, %.0f with %d", many,
			most.clients, one, alone.clients))
	}
	return found
}

// issues maps a driver and a failed check to an issue in the library's tracker. If the cause is evident from the
// library's code, it maps them to the cause instead.
var issues = map[[2]string]string{
	{"exec:redis-py", "cancelled release"}: "release deletes its token before it sends the command: " +
		"[redis-py #4258](https://github.com/redis/redis-py/pull/4258) fixes this after 8.1.0",
	{"exec:redis-py", "refused writes"}: "same cause as cancelled release",
	{"exec:redis-py", "failover"}:       "same cause as cancelled release",
	{"exec:redis-py-asyncio", "exclusion"}: "an acquire that is cancelled while its SET is in flight leaves the " +
		"lock held until its TTL",
	{"exec:aioredlock", "renewal and release"}:  "the renewal script acquires the lock if no client holds it",
	{"exec:python-redis-lock", "dead holder"}:   "a waiter retries only after its own TTL, which is longer here",
	{"exec:python-redis-lock", "slow answer"}:   "same cause as dead holder",
	{"exec:python-redis-lock", "late commands"}: "same cause as dead holder",
	{"exec:aioredlock", "exclusion"}: "a cancelled acquire is undone over another connection, and the undo may reach " +
		"Redis before the script of the acquire",
	{"exec:aioredlock", "acquire and release"}: "the release script returns OK if the lock does not exist",
	{"exec:redlock", "validity"}: "[node-redlock #296]" +
		"(https://github.com/mike-marcacci/node-redlock/issues/296)",
	{"exec:redlock", "refused writes"}: "the release script calls DEL by redis.pcall, and " +
		"reports success even if Redis refused the DEL",
	{"exec:redlock", "failover"}: "same cause as refused writes",
	{"exec:redisson", "abandoned acquire"}: "[redisson #7272](https://github.com/redisson/redisson/issues/7272), " +
		"[#4368](https://github.com/redisson/redisson/issues/4368)",
	{"exec:redisson", "abandoned release"}: "[redisson #7272](https://github.com/redisson/redisson/issues/7272)",
	{"exec:redisson fenced", "try-lock"}:   "RFencedLock.tryLockAndGetToken() waits while another client holds the lock",
}

// repaired maps a driver and a check to an issue in the library's tracker that the check would detect. If the check
// passes, the page notes that the issue was not seen.
var repaired = map[[2]string]string{
	{"exec:redis-py-asyncio", "cancelled release"}: "[redis-py #3847](https://github.com/redis/redis-py/issues/3847)",
	{"exec:redis-semaphore", "renewal and release"}: "[redis-semaphore #205]" +
		"(https://github.com/swarthy/redis-semaphore/issues/205)",
}

// marks maps the verdict of a check to the symbol in the table.
var marks = map[locktest.Verdict]string{
	locktest.Passed: "✓", locktest.Broken: "✗", locktest.Admitted: "!", locktest.NotTried: "–", locktest.NotJudged: "?",
	check.NotRun: "?", locktest.NotApplicable: "",
}

// conformance returns the section with the findings of lockbench check.
func conformance(checked []*check.Document) string {
	b := new(strings.Builder)
	b.WriteString("\n## What `lockbench check` found\n\n✓ the promise was kept; ✗ it was broken; ! it was broken, as " +
		"by every driver; – it could not be tested; ? no verdict; empty: the lock does not make this promise, or has " +
		"no such operation. [CONFORMANCE.md](CONFORMANCE.md) explains what each check proves.\n\n| check |")
	for _, d := range checked {
		fmt.Fprintf(b, " %s |", strings.TrimPrefix(d.Strategy, "exec:"))
	}
	b.WriteString("\n| --- |" + strings.Repeat(" :-: |", len(checked)) + "\n")
	for i, one := range checked[0].Checks {
		fmt.Fprintf(b, "| %s |", one.Check)
		for _, d := range checked {
			fmt.Fprintf(b, " %s |", marks[d.Checks[i].Verdict])
		}
		b.WriteString("\n")
	}
	for _, d := range checked {
		fmt.Fprintf(b, "\n`%s`, %s:\n\n", d.Strategy, d.Lock)
		for _, one := range d.Checks {
			if issue := repaired[[2]string{d.Strategy, one.Check}]; issue != "" && one.Verdict == locktest.Passed {
				fmt.Fprintf(b, "- %s: passed, so %s was not seen\n", one.Check, issue)
			}
			if one.Verdict != locktest.Broken && one.Verdict != locktest.NotJudged {
				continue
			}
			fmt.Fprintf(b, "- %s: ", one.Check)
			if len(one.Failures) > 0 {
				fmt.Fprint(b, strings.ReplaceAll(one.Failures[0].Seen, "<", "&lt;"))
			} else {
				fmt.Fprintf(b, "no verdict, %s", one.Because)
			}
			if issue := issues[[2]string{d.Strategy, one.Check}]; issue != "" {
				fmt.Fprintf(b, " (%s)", issue)
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// TestTailRatioBounds checks the ratio p99 ÷ p50. The page must call the ratio a lower bound if the p99 is a lower
// bound, and omit the ratio if the p50 is a lower bound.
func TestTailRatioBounds(t *testing.T) {
	t.Parallel()
	ratio := func(p50, p99 *results.Bound) string {
		report := &results.Report{Strategies: []results.Strategy{{Name: "a"}}, Runs: []results.Run{{Strategy: "a"}}}
		report.Runs[0].Waiting.PerAcquisition = results.Distribution{P50: p50, P99: p99}
		return strings.Join(standsOut([]cell{{100, report.Summaries()[0]}}), "; ")
	}
	exact, bound := &results.Bound{NS: 6e9}, &results.Bound{NS: 6e9, AtLeast: true}
	for want, got := range map[string]string{
		"the p99 of the wait is 200 times its p50 with 100 clients":          ratio(&results.Bound{NS: 3e7}, exact),
		"the p99 of the wait is at least 200 times its p50 with 100 clients": ratio(&results.Bound{NS: 3e7}, bound),
		"": ratio(&results.Bound{NS: 3e7, AtLeast: true}, bound),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
