package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
)

// watchedRun is a lockbench that runs in this process and serves its live page or metrics to the test.
type watchedRun struct {
	mu     sync.Mutex
	said   bytes.Buffer // standard error
	file   string       // file of the report
	end    context.CancelFunc
	ending sync.WaitGroup
	code   int
}

// Write collects what lockbench prints on standard error.
func (w *watchedRun) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(b)
}

// watch starts lockbench with the flags in words. lockbench runs until the test calls report, or until the test ends.
func watch(t *testing.T, words ...string) *watchedRun {
	t.Helper()
	w := &watchedRun{file: filepath.Join(t.TempDir(), "run.json")}
	ctx, cancel := context.WithCancel(t.Context())
	w.end = cancel
	words = append(words, "--no-baselines", "-o", "json="+w.file)
	w.ending.Go(func() { w.code = command.Main(ctx, words, nil, &bytes.Buffer{}, w) })
	t.Cleanup(func() {
		cancel()
		w.ending.Wait()
	})
	return w
}

// address waits until lockbench prints the address that it serves for the named flag, such as metrics, and returns that
// address.
func (w *watchedRun) address(t *testing.T, flag string) (found string) {
	t.Helper()
	poll.Until(t, "it says where "+flag+" is", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if said := regexp.MustCompile("--" + flag + `: (http://\S+)`).FindStringSubmatch(w.said.String()); said != nil {
			found = said[1]
		}
		return found != ""
	})
	return found
}

// report interrupts lockbench and returns the report that it wrote.
func (w *watchedRun) report(t *testing.T) *results.Report {
	t.Helper()
	w.end()
	w.ending.Wait()
	file, err := os.Open(w.file)
	if err != nil {
		t.Fatalf("%v; it ended with %d: %s", err, w.code, &w.said)
	}
	defer file.Close()
	report, err := results.ReadJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// prometheus starts a Prometheus that scrapes an address. It returns a function that evaluates a query and returns
// false unless the result is a single number.
func prometheus(t *testing.T, address string, flags ...string) func(query string) (float64, bool) {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	config := "scrape_configs: [{job_name: lockbench, scrape_interval: 200ms, scrape_timeout: 200ms, " +
		"static_configs: [{targets: ['" + at.Host + "']}]}]\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	server := exec.Command("prometheus", append(flags, "--config.file="+file, "--storage.tsdb.path="+folder,
		"--web.listen-address="+own, "--log.level=error")...)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	})
	return func(query string) (float64, bool) {
		query = "http://" + own + "/api/v1/query?query=" + url.QueryEscape(query)
		answer, err := http.Get(query) //nolint:noctx // the caller repeats the query
		if err != nil {
			return 0, false // Prometheus is still starting
		}
		defer answer.Body.Close()
		var said struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		if err := json.NewDecoder(answer.Body).Decode(&said); err != nil || len(said.Data.Result) != 1 {
			return 0, false
		}
		value, err := strconv.ParseFloat(fmt.Sprint(said.Data.Result[0].Value[1]), 64)
		return value, err == nil
	}
}

// During a run of a driver, the live page must show the driver's acquisitions, second by second.
func TestLivePageShowsRunningDriver(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("drivers need Linux")
	}
	folder := t.TempDir()
	script := "#!/bin/sh\nexec driver local\n"
	if err := os.WriteFile(filepath.Join(folder, "mine"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	t.Setenv("LOCKBENCH_DRIVERS", folder)
	w := watch(t, "-s", "exec:mine", "--hold", "1ms", "-c", "4", "--instances", "1", "-w", "0s", "-d", "1h", "--live", "0")
	address := w.address(t, "live")
	line := regexp.MustCompile(`(?s)aria-label="Throughput".*?\(this run\): ([\d.]+)`)
	poll.Until(t, "the page has the driver's rate, and the part of the window", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		page, _ := io.ReadAll(answer.Body)
		found := line.FindSubmatch(page)
		return found != nil && string(found[1]) != "0" && regexp.MustCompile(`[1-9]\d* of 3600 s`).Match(page)
	})
	w.report(t)
}

// TestPrometheus lets a real Prometheus scrape a run to its end. The figures in Prometheus must then equal those in the
// report, with classic and with native histograms. A second, longer run keeps lockbench alive until Prometheus has
// scraped the final figures of the first.
func TestPrometheus(t *testing.T) {
	if !extent.More() {
		t.Skip("two servers of Prometheus take 9 s of CPU: make others")
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("Debian's prometheus is not installed: ", err)
	}
	t.Parallel()
	w := watch(t, "-s", "local", "--hold", "1ms,10s", "-c", "20", "-w", "0s", "-n", "2000", "--seed", "4",
		"--metrics", "0")
	address := w.address(t, "metrics")
	const first, second = `{strategy="local",point="hold=1ms"}`, `{strategy="local",point="hold=10s"}`
	type answers struct{ acquisitions, waits, p99 float64 }
	got := map[string]answers{}
	for kind, flags := range map[string][]string{"classic": nil, "native": {"--enable-feature=native-histograms"}} {
		ask := prometheus(t, address, flags...)
		poll.Until(t, "the second run has been scraped", func() bool {
			_, known := ask("lockbench_acquisitions_total" + second)
			return known
		})
		count := "lockbench_wait_seconds_count" + first
		if kind == "native" {
			count = "histogram_count(lockbench_wait_seconds" + first + ")"
			// ask needs a single series, so the query counts the classic buckets. The query returns no series if Prometheus
			// stored no classic bucket.
			if _, classic := ask("count(lockbench_wait_seconds_bucket)"); classic {
				t.Error("Prometheus took a native histogram for a classic one")
			}
		}
		var a answers
		for query, value := range map[string]*float64{
			"lockbench_acquisitions_total" + first: &a.acquisitions, count: &a.waits,
			"histogram_quantile(0.99, lockbench_wait_seconds" + first + ") or " + // of the waits that ended
				"histogram_quantile(0.99, lockbench_wait_seconds_bucket" + first + ")": &a.p99,
		} {
			poll.Until(t, kind+": Prometheus knows "+query, func() (known bool) {
				*value, known = ask(query)
				return known
			})
		}
		got[kind] = a
	}
	run := w.report(t).Runs[0]
	waits := run.Waiting.PerAcquisition
	want := waits.P99
	if run.Point != "hold=1ms" || want == nil || want.AtLeast || run.Speed.Acquisitions != 2000 {
		t.Fatalf("the first run: %s, %d acquisitions, p99 %v", run.Point, run.Speed.Acquisitions, want)
	}
	for kind, wide := range map[string]float64{"classic": 2, "native": math.Pow(2, 1.0/8)} {
		a, p99 := got[kind], float64(want.NS)/1e9
		t.Logf("%s: %v; the table has %v", kind, a, want)
		if a.acquisitions != 2000 || a.waits != float64(waits.Count) || a.p99 > p99*wide || a.p99 < p99/wide {
			t.Errorf("%s: %+v, want %d acquisitions, %d waits, p99 %v within a bucket", kind, a, run.Speed.Acquisitions,
				waits.Count, want)
		}
	}
}
