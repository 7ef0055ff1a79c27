//go:build !redisonly

package command_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/otlptest"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
)

// arrived fails the test unless the pushed metrics equal the figures of the report, which has one run of the strategy
// local.
func arrived(t *testing.T, push otlptest.Push, report *results.Report) {
	t.Helper()
	const of = `{point="",strategy="local"}`
	run := report.Runs[0]
	waits := run.Waiting.PerAcquisition
	for series, want := range map[string]float64{
		"lockbench_acquisitions_total" + of: float64(run.Speed.Acquisitions),
		"lockbench_wait_seconds_count" + of: float64(waits.Count),
		"lockbench_waiting_clients" + of:    0,
		`lockbench_run_timestamp_seconds{edge="start",point="",run="1",strategy="local"}`: float64(
			run.Started.UnixNano()) / 1e9,
		"lockbench_generator_cpu_seconds_total" + of: run.Generator.CPUSeconds,
	} {
		if got, known := push.Series[series]; got != want || !known {
			t.Errorf("%s is %v (pushed: %v); the report has %v", series, got, known, want)
		}
	}
	if run.Speed.Acquisitions == 0 || waits.Count == 0 {
		t.Errorf("%d acquisitions, %d waits", run.Speed.Acquisitions, waits.Count)
	}
}

// A run that ends before the first push is due must still push all its figures.
func TestShortRunIsPushedCompletely(t *testing.T) {
	receiver := otlptest.New(t, 0)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
	w := watch(t, "-s", "local", "--hold", "100us", "-c", "20", "-w", "0s", "-n", "2000", "--metrics", "otlp")
	w.ending.Wait()
	report := w.report(t)
	pushes := receiver.Pushes()
	if w.code != 0 || len(pushes) != 1 || strings.Contains(w.said.String(), "warning: --metrics") {
		t.Fatalf("exit code %d, %d pushes, it says %s", w.code, len(pushes), &w.said)
	}
	arrived(t, pushes[0], report)
}

// An interrupted run must push all its figures before the program ends.
func TestInterruptedRunIsPushedCompletely(t *testing.T) {
	receiver := otlptest.New(t, 0)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
	w := watch(t, "-s", "local", "--hold", "1ms", "-c", "20", "-w", "0s", "-d", "1h", "--metrics", "otlp")
	poll.Until(t, "acquisitions are pushed", func() bool {
		pushes := receiver.Pushes()
		return len(pushes) > 0 && pushes[len(pushes)-1].Series[`lockbench_acquisitions_total{point="",strategy="local"}`] > 0
	})
	report := w.report(t)
	pushes := receiver.Pushes()
	arrived(t, pushes[len(pushes)-1], report)
}
