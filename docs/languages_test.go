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

// TestLanguages writes docs/evidence/LANGUAGES.md from the reports that make languages writes to bin/languages.
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

// driverFigures collects the figures of all drivers.
type driverFigures struct {
	drivers []string // in the order of the table
	cells   map[string][]cell
	reports []*results.Report
}

// cell has the figures of one driver with one number of clients.
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

// columns lists the columns of the table, with their metrics.
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
		"`exec:go pubsub`"+` is our own lock through a driver; the drivers that do nothing are the floor of their languages.

On %s %s, %s, %d CPUs, %s. `, w.Hold, w.Duration, w.Warmup, first.Redis.Name, first.Redis.Version,
		first.Environment.CPUModel, first.Environment.CPUs,
		noise(p.reports, ", and look again at verdicts of the checks that speak of 20 s or of 1m0s"))
	b.WriteString("Starved are clients without a turn in the time of two for each.\n\n| driver | clients |")
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

// causes explains outliers by causes that are evident from the code.
var causes = map[string]string{
	"exec:redis-py": "who finds the lock held sleeps for 100 ms, and who has just released it asks first",
	"exec:redlock 5": "what a try got on less than a majority is undone when the last try has failed, and with " +
		"`retryCount: -1`, which is its wait without limit, there is no last one: those who split the nodes wait " +
		"for the TTL",
}

// noise returns a sentence with the number of runs in which another program kept the machine busy, and the caution; ""
// if there are none.
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
		return fmt.Sprintf("which had nothing else to do in all %d runs", runs)
	}
	return fmt.Sprintf("**which was busy with something else in %d of %d runs: believe counts, not times%s**", noisy, runs,
		caution)
}

// standsOut returns the remarkable figures of a driver.
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
		found = append(found, fmt.Sprintf("%.0f commands an acquisition with %d clients, %.0f with %d", many,
			most.clients, one, alone.clients))
	}
	return found
}

// issues has, for each finding of the checks, the issue in the library's tracker or a cause that is evident from the
// code.
var issues = map[[2]string]string{
	{"exec:redis-py", "cancelled release"}: "release forgets its token before it asks Redis: " +
		"[redis-py #4258](https://github.com/redis/redis-py/pull/4258) repairs that after 8.1.0",
	{"exec:redis-py", "refused writes"}: "the same",
	{"exec:redis-py", "failover"}:       "the same",
	{"exec:redis-py-asyncio", "exclusion"}: "an acquire that is cancelled while its SET is on the way leaves the " +
		"lock until its TTL",
	{"exec:aioredlock", "renewal and release"}:  "the script of the renewal takes the lock if nobody has it",
	{"exec:python-redis-lock", "dead holder"}:   "who waits looks again after a TTL of its own, which is longer here",
	{"exec:python-redis-lock", "slow answer"}:   "the same",
	{"exec:python-redis-lock", "late commands"}: "the same",
	{"exec:aioredlock", "exclusion"}: "an acquire that is cancelled is undone on another connection, which may be " +
		"faster than its script",
	{"exec:aioredlock", "acquire and release"}: "the script of the release answers OK if there is no lock",
	{"exec:redlock", "validity"}: "[node-redlock #296]" +
		"(https://github.com/mike-marcacci/node-redlock/issues/296)",
	{"exec:redlock", "refused writes"}: "the script of the release asks by pcall, and takes a " +
		"DEL that was refused for done",
	{"exec:redlock", "failover"}: "the same",
	{"exec:redisson", "abandoned acquire"}: "[redisson #7272](https://github.com/redisson/redisson/issues/7272), " +
		"[#4368](https://github.com/redisson/redisson/issues/4368)",
	{"exec:redisson", "abandoned release"}: "[redisson #7272](https://github.com/redisson/redisson/issues/7272)",
	{"exec:redisson fenced", "try-lock"}:   "RFencedLock.tryLockAndGetToken() waits while another holds the lock",
}

// repaired has issues that a check would detect, and that are fixed if the check passes.
var repaired = map[[2]string]string{
	{"exec:redis-py-asyncio", "cancelled release"}: "[redis-py #3847](https://github.com/redis/redis-py/issues/3847)",
	{"exec:redis-semaphore", "renewal and release"}: "[redis-semaphore #205]" +
		"(https://github.com/swarthy/redis-semaphore/issues/205)",
}

// marks maps the outcome of a check to its cell in the table.
var marks = map[locktest.Verdict]string{
	locktest.Passed: "✓", locktest.Broken: "✗", locktest.Admitted: "!", locktest.NotTried: "–", locktest.NotJudged: "?",
	check.NotRun: "?", locktest.NotApplicable: "",
}

// conformance returns the section with the findings of lockbench check.
func conformance(checked []*check.Document) string {
	b := new(strings.Builder)
	b.WriteString("\n## What `lockbench check` found\n\n✓ the promise was kept; ✗ it was broken; ! it was broken, as " +
		"of every driver; – it could not be tried; ? no verdict; empty: the lock does not claim it, or has no such " +
		"thing. [CONFORMANCE.md](CONFORMANCE.md) says what each check proves.\n\n| check |")
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

// TestWhatStandsOut checks that the ratio p99 ÷ p50 is a lower bound if the p99 is one, and unknown if the p50 is one.
func TestWhatStandsOut(t *testing.T) {
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
