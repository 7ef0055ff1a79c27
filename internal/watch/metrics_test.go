package watch

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lockbench/lockbench/results"
)

// recorded returns the report in results/testdata/recorded.json.
func recorded(t *testing.T) *results.Report {
	t.Helper()
	file, err := os.Open("../../results/testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	report, err := results.ReadJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// scraped makes Prometheus scrape each of the reports in turn, and returns the series of the last scrape.
func scraped(t *testing.T, reports ...*results.Report) (series map[string]string) {
	t.Helper()
	m := newMetrics()
	for _, report := range reports {
		m.last.Store(&seen{report: report})
		series = scrape(t, m.pages())
	}
	return series
}

func scrape(t *testing.T, pages http.Handler) map[string]string {
	t.Helper()
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.Code != http.StatusOK || !utf8.Valid(text) {
		t.Fatalf("%d, %v: %s", answer.Code, err, text)
	}
	series := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if cut := strings.LastIndex(line, " "); !strings.HasPrefix(line, "#") {
			series[line[:cut]] = strings.TrimSpace(line[cut:])
		}
	}
	return series
}

func TestRunsOfAStrategyAddUp(t *testing.T) {
	t.Parallel()
	report := recorded(t)
	again := report.Runs[0]
	again.Invalid = results.PlainTexts("on purpose")
	report.Runs = append(report.Runs, again)
	granted, waits, name := int64(0), int64(0), again.Strategy
	for _, run := range report.Runs {
		if run.Strategy == name {
			granted += run.Speed.Acquisitions
			waits += run.Waiting.PerAcquisition.Count
		}
	}
	before := *report
	before.Runs = slices.Clone(report.Runs[:len(report.Runs)-1])
	underWay := &before.Runs[len(before.Runs)-1]
	underWay.Speed.Acquisitions--
	got := scraped(t, &results.Report{}, &before, report)
	if other := scraped(t, report); !maps.Equal(got, other) {
		t.Errorf("scraped before, too: %v\nonly then: %v", got, other)
	}
	for _, bound := range bounds {
		upTo := int64(0)
		for _, run := range report.Runs {
			for _, bin := range run.Waiting.PerAcquisition.Histogram {
				if run.Strategy == name && float64(bin.To)/1e9 <= bound {
					upTo += bin.Count
				}
			}
		}
		series := fmt.Sprintf(`lockbench_wait_seconds_bucket{point="",strategy=%q,le="%v"}`, name, bound)
		if got[series] != fmt.Sprint(upTo) {
			t.Errorf("%s is %q, want %d", series, got[series], upTo)
		}
	}
	for series, want := range map[string]int64{
		`lockbench_acquisitions_total{point="",strategy=%q}`:            granted,
		`lockbench_wait_seconds_count{point="",strategy=%q}`:            waits,
		`lockbench_wait_seconds_bucket{point="",strategy=%q,le="+Inf"}`: waits,
		`lockbench_invalid_runs_total{point="",strategy=%q}`:            1,
	} {
		if series = fmt.Sprintf(series, name); got[series] != fmt.Sprint(want) || want == 0 {
			t.Errorf("%s is %q, want %d", series, got[series], want)
		}
	}
}

// sameSeries fails the test for each series whose value differs from want; "" means that the series must be absent.
func sameSeries(t *testing.T, about string, got, want map[string]string) {
	t.Helper()
	for series, value := range want {
		if got[series] != value {
			t.Errorf("%s %s is %q, want %q", about, series, got[series], value)
		}
	}
}

// One run has ended and another is under way. The open waits must count for the run under way, until it ends.
func TestWaitingClientsOfCurrentRun(t *testing.T) {
	t.Parallel()
	report := recorded(t)
	ended, now := &report.Runs[0], &report.Runs[1]
	if report.Runs = report.Runs[:2]; ended.Strategy == now.Strategy {
		t.Fatal("both runs are of a strategy")
	}
	ended.Started, ended.WindowNS = time.Unix(1000, 5e8), 4e9
	ended.Fairness.Starved, now.Fairness.Starved = new(3), nil
	of := func(name string, run *results.Run, more ...string) string {
		labels := append([]string{`point=""`, fmt.Sprintf("strategy=%q", run.Strategy)}, more...)
		slices.Sort(labels)
		return "lockbench_" + name + "{" + strings.Join(labels, ",") + "}"
	}
	m := newMetrics()
	m.last.Store(&seen{report, []results.Wait{{Client: 4, NS: 2e9}, {Client: 2, NS: 3e9}, {Client: 1, NS: 1e9}}})
	sameSeries(t, "in the run", scrape(t, m.pages()), map[string]string{
		of("waiting_clients", now): "3", of("oldest_wait_seconds", now): "3", of("starved_clients", now): "",
		of("waiting_clients", ended): "0", of("oldest_wait_seconds", ended): "0", of("starved_clients", ended): "3",
		of("run_timestamp_seconds", ended, `run="1"`, `edge="start"`): "1000.5",
		of("run_timestamp_seconds", ended, `run="1"`, `edge="end"`):   "1004.5",
	})
	now.Fairness.Starved = new(0)
	m.last.Store(&seen{report: report})
	sameSeries(t, "after the run", scrape(t, m.pages()), map[string]string{
		of("waiting_clients", now): "0", of("oldest_wait_seconds", now): "0", of("starved_clients", now): "0",
	})
}

// In some reports the servers' CPU time is unknown, because a reading failed. The counter must not decrease.
func TestServerCPUNeverDecreases(t *testing.T) {
	t.Parallel()
	cpu := func(seconds ...float64) *results.Report {
		report := recorded(t)
		first := report.Runs[0]
		report.Runs = nil
		for _, s := range seconds {
			first.Server.Window = nil
			if s > 0 {
				first.Server.Window = &results.ServerDelta{CPU: &s}
			}
			report.Runs = append(report.Runs, first)
		}
		return report
	}
	series := fmt.Sprintf(`lockbench_server_cpu_seconds_total{point="",strategy=%q}`, cpu(0).Runs[0].Strategy)
	for _, test := range []struct {
		seen []*results.Report
		want string
	}{
		{[]*results.Report{cpu(0)}, ""}, // unknown differs from 0
		{[]*results.Report{cpu(1.5), cpu(0)}, "1.5"},
		{[]*results.Report{cpu(1.5), cpu(0), cpu(2)}, "2"},
		{[]*results.Report{cpu(2), cpu(2, 0), cpu(2, 0.5)}, "2.5"},
	} {
		if got := scraped(t, test.seen...)[series]; got != test.want {
			t.Errorf("%s is %q, want %q", series, got, test.want)
		}
	}
}

// Grafana must show the same p99 as the report. Ten of 110 waits are open for 5 s. Only the report's p99 includes them;
// a p99 from the histograms would not.
func TestPrometheusP99IncludesOpenWaits(t *testing.T) {
	t.Parallel()
	report := recorded(t)
	report.Runs = report.Runs[:1]
	run := &report.Runs[0]
	run.Waiting.PerAcquisition = results.Describe(results.Observations{
		Ended: results.Histogram{{To: 1e6, Count: 100}}, Open: results.Histogram{{To: 5e9, Count: 10}},
	}, &results.Bound{NS: 5e9, AtLeast: true})
	series := fmt.Sprintf(`lockbench_wait_p99_seconds{point="",strategy=%q}`, run.Strategy)
	if got := scraped(t, report)[series]; got != "5" {
		t.Errorf("10 of 110 clients have waited for 5 s, and the p99 is %q", got)
	}
	run.Waiting.PerAcquisition = results.Distribution{}
	if got, known := scraped(t, report)[series]; known {
		t.Errorf("without a wait the p99 is %q", got)
	}
	text, err := os.ReadFile("../../deploy/grafana/lockbench.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), `histogram_quantile(0.99, sum by (strategy, point) (rate(lockbench_wait_seconds{`) {
		t.Error("the dashboard computes the p99 of the waits without the open ones")
	}
}

// A strategy or a server may choose any text. The number and the length of the labels must stay bounded.
func TestHostileLabelsAreBounded(t *testing.T) {
	t.Parallel()
	report := recorded(t)
	report.Runs = report.Runs[:1]
	run := &report.Runs[0]
	run.Strategy, run.Errors = "a\"}\n\xff\\", nil
	for i := range 500 {
		text := fmt.Sprintf("%d\"\n\xff%s", i, strings.Repeat("é", 500))
		run.Errors = append(run.Errors, results.ErrorCount{Error: text, Count: 1})
	}
	sum, kinds := 0, 0
	for series, value := range scraped(t, report) {
		if strings.HasPrefix(series, "lockbench_errors_total{") {
			count := 0
			if _, err := fmt.Sscan(value, &count); err != nil {
				t.Error(err)
			}
			sum, kinds = sum+count, kinds+1
		}
		if len(series) > 2*mostText {
			t.Errorf("a series of %d bytes: %s", len(series), series)
		}
	}
	if sum != 500 || kinds != mostErrors+1 {
		t.Errorf("%d errors of %d kinds", sum, kinds)
	}
}

// In the second report, other errors are the most frequent. An error must keep its series, so that no count decreases.
func TestErrorCountsNeverDecrease(t *testing.T) {
	t.Parallel()
	reports := []*results.Report{recorded(t), recorded(t)}
	for later, report := range reports {
		report.Runs = report.Runs[:1]
		for i := range int64(60 * (1 + later)) {
			count := 1 + i // the last are the most frequent
			if later == 0 {
				count = 60 - i // the first
			}
			report.Runs[0].Errors = append(report.Runs[0].Errors,
				results.ErrorCount{Error: fmt.Sprint(i), Count: count + int64(later)*60})
		}
	}
	after := scraped(t, reports...)
	for series, before := range scraped(t, reports[0]) {
		var was, is float64
		if _, err := fmt.Sscan(before+" "+after[series], &was, &is); err != nil || is < was {
			t.Errorf("%s was %s and is %q", series, before, after[series])
		}
	}
}

// The queries of Grafana's dashboard must use every exported metric, and no metric that does not exist.
func TestDashboardUsesExistingMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/lockbench.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title, UID  string
		Annotations struct {
			List []struct{ Name, Expr string }
		}
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	exist := map[string]bool{}
	described := make(chan *prometheus.Desc, 100)
	(&metrics{}).Describe(described)
	close(described)
	for one := range described {
		exist[regexp.MustCompile(`"(lockbench_\w+)"`).FindStringSubmatch(one.String())[1]] = false
	}
	asks := func(title, expr string) {
		asked := regexp.MustCompile(`lockbench_\w+`).FindAllString(expr, -1)
		if len(asked) == 0 {
			t.Errorf("%q asks for %q", title, expr)
		}
		for _, name := range asked {
			for _, part := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, part)
			}
			if _, known := exist[name]; !known {
				t.Errorf("%q asks for %s, which does not exist", title, name)
			}
			exist[name] = true
		}
	}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("%q asks for nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			asks(panel.Title, target.Expr)
			// A Prometheus that scrapes native histograms stores no _bucket series. Each query must therefore also work without
			// them.
			native, classic, _ := strings.Cut(target.Expr, " or ")
			if strings.Contains(target.Expr, "histogram_quantile") &&
				native != strings.NewReplacer("le, ", "", "_bucket", "").Replace(classic) {
				t.Errorf("%q does not ask for both kinds of histograms: %s", panel.Title, target.Expr)
			}
		}
	}
	for _, marks := range dashboard.Annotations.List {
		asks(marks.Name, marks.Expr)
	}
	docs, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, asked := range exist {
		if !asked || !strings.Contains(string(docs), "`"+name+"`") {
			t.Errorf("no panel shows %s, or docs/METRICS.md does not define it", name)
		}
	}
}
