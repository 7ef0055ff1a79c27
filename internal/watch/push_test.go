//go:build !redisonly

package watch

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/testkit/otlptest"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
)

const (
	hour = "3600000" // in the milliseconds of the standard variables
	key  = "k3y-of-the-receiver"
)

// pushing starts pushing to the receiver at url, with interval in ms. The function that it returns lists the warnings
// so far.
func pushing(t *testing.T, url, interval string) (*Watchers, func() []string) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", interval)
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", hour)
	t.Setenv("OTEL_METRIC_EXPORT_TIMEOUT", hour)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20"+key)
	w, err := Listen(Addresses{Metrics: OTLP})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said []string
	places := w.Serve(func(text string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, text)
	})
	if len(places) != 1 || !strings.Contains(places[0], url) || !w.Any() {
		t.Errorf("it pushes to %q", places)
	}
	return w, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return said
	}
}

func closed(t *testing.T, w *Watchers) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// If a run ends before the first push is due, the receiver still gets the metrics that Prometheus would have scraped.
func TestPushMatchesScrape(t *testing.T) {
	report, waiting := recorded(t), []results.Wait{{Client: 1, NS: 5e9}, {Client: 2, NS: 7e9}}
	scrapedToo := newMetrics()
	scrapedToo.last.Store(&seen{report, waiting})
	for aggregation, native := range map[string]bool{"": false, "base2_exponential_bucket_histogram": true} {
		t.Setenv("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION", aggregation)
		receiver := otlptest.New(t, 1) // refuses the first push, so that the last one is retried
		w, said := pushing(t, receiver.URL, hour)
		w.See(report, waiting)
		closed(t, w)
		pushes := receiver.Pushes()
		if len(pushes) != 1 || len(said()) != 0 {
			t.Fatalf("%d pushes, warnings %q", len(pushes), said())
		}
		want := map[string]float64{}
		for series, text := range scrape(t, scrapedToo.pages()) {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			if !native || !strings.Contains(series, "_bucket{") {
				want[series] = value
			}
		}
		push := pushes[0]
		if diff := cmp.Diff(want, push.Series); diff != "" || (push.Native > 0) != native {
			t.Errorf("%d native histograms, - is scraped, + is pushed:\n%s", push.Native, diff)
		}
		if push.Path != "/v1/metrics" || push.Header.Get("Authorization") != "Bearer "+key ||
			push.Resource["service.name"] != "lockbench" || push.Resource["service.instance.id"] == "" {
			t.Errorf("%s, %v, %v", push.Path, push.Header, push.Resource)
		}
	}
}

// The receiver never replies, and the exporter would wait an hour for it. Close must give up after the duration
// lastPush, with one warning.
func TestHangingReceiverDoesNotDelayClose(t *testing.T) {
	arrived, left := make(chan struct{}, 100), make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server notices a disconnected client only after the body
		arrived <- struct{}{}
		<-r.Context().Done()
		left <- struct{}{}
	}))
	t.Cleanup(server.Close)
	w, said := pushing(t, server.URL, "1")
	<-arrived
	w.See(recorded(t), nil)
	closed(t, w)
	<-left
	if all := said(); len(all) != 1 || !strings.Contains(all[0], server.URL) {
		t.Errorf("warnings: %q", all)
	}
}

// If a receiver refuses all pushes, the user gets exactly one warning. The warning omits the key that the receiver's
// response quotes.
func TestRefusedPushWarnsOnceWithoutKey(t *testing.T) {
	var mu sync.Mutex
	refused := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		refused++
		http.Error(w, "no such key: "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	w, said := pushing(t, server.URL, "1")
	poll.Until(t, "several pushes are refused", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return refused > 3
	})
	closed(t, w)
	all := said()
	if len(all) != 1 || !strings.Contains(all[0], "401 Unauthorized") || !strings.Contains(all[0], "no such key") ||
		strings.Contains(all[0], key) {
		t.Errorf("warnings: %q", all)
	}
}

// If nothing listens at the receiver's address, the user gets exactly one warning.
func TestUnreachableReceiverIsReported(t *testing.T) {
	server := httptest.NewServer(nil)
	server.Close()
	w, said := pushing(t, server.URL, hour)
	closed(t, w)
	if all := said(); len(all) != 1 || !strings.Contains(all[0], "connection refused") {
		t.Errorf("warnings: %q", all)
	}
}

// A dry run calls Listen and Close but not Serve. It must push nothing.
func TestNothingIsPushedBeforeServe(t *testing.T) {
	receiver := otlptest.New(t, 0)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	w, err := Listen(Addresses{Metrics: OTLP})
	if err != nil {
		t.Fatal(err)
	}
	closed(t, w)
	if pushes := receiver.Pushes(); len(pushes) > 0 {
		t.Errorf("%d pushes", len(pushes))
	}
}

// OpenTelemetry would log a malformed header and push without it. lockbench must report an error instead.
func TestMalformedVariablesAreErrors(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization: Bearer " + key, "OTEL_EXPORTER_OTLP_METRICS_HEADERS": "a b=" + key,
		"OTEL_EXPORTER_OTLP_CERTIFICATE": "none.pem", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon",
		"OTEL_RESOURCE_ATTRIBUTES": "region",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			w, err := Listen(Addresses{Metrics: OTLP})
			if err == nil || !strings.HasPrefix(err.Error(), "--metrics otlp: ") || !strings.Contains(err.Error(), "OTEL_") ||
				strings.Contains(err.Error(), key) || w.Any() {
				t.Errorf("%s=%s: %v", name, value, err)
			}
		})
	}
}
