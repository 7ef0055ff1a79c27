//go:build !redisonly

// Package otlptest is an OTLP receiver for tests.
package otlptest

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// Push is the content of one OTLP request: its metrics, its resource attributes and its HTTP header.
type Push struct {
	Series   map[string]float64 // named as Prometheus names them in its text format
	Native   int                // exponential histograms
	Resource map[string]string
	Header   http.Header
	Path     string
}

// Receiver is an HTTP server at URL that decodes and keeps every OTLP request.
type Receiver struct {
	URL string

	mu     sync.Mutex
	pushes []Push
	hidden int // requests to refuse
}

// New starts a receiver that ends with the test. The receiver rejects the first requests with 503 and does not keep
// them. refused is the number of these requests.
func New(t *testing.T, refused int) *Receiver {
	t.Helper()
	r := &Receiver{hidden: refused}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if r.refuses() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		push, err := decode(request)
		if err != nil {
			t.Errorf("the receiver got: %v", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pushes = append(r.pushes, push)
	}))
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

func (r *Receiver) refuses() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hidden--
	return r.hidden >= 0
}

// Pushes returns the requests that the receiver has accepted so far, in order.
func (r *Receiver) Pushes() []Push {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.pushes)
}

func decode(request *http.Request) (Push, error) {
	push := Push{
		Series: map[string]float64{}, Resource: map[string]string{}, Header: request.Header, Path: request.URL.Path,
	}
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return push, fmt.Errorf("unpack: %w", err)
		}
		body = unpacked
	}
	encoded, err := io.ReadAll(body)
	if err != nil {
		return push, fmt.Errorf("read: %w", err)
	}
	var got collector.ExportMetricsServiceRequest
	if err := proto.Unmarshal(encoded, &got); err != nil {
		return push, fmt.Errorf("decode: %w", err)
	}
	for _, of := range got.GetResourceMetrics() {
		for _, a := range of.GetResource().GetAttributes() {
			push.Resource[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeMetrics() {
			for _, m := range scope.GetMetrics() {
				push.add(m)
			}
		}
	}
	return push, nil
}

func (p *Push) add(m *pb.Metric) {
	name := m.GetName()
	for _, point := range slices.Concat(m.GetSum().GetDataPoints(), m.GetGauge().GetDataPoints()) {
		p.Series[series(name, point.GetAttributes())] = point.GetAsDouble()
	}
	for _, point := range m.GetHistogram().GetDataPoints() {
		upTo := uint64(0)
		for i, count := range point.GetBucketCounts() {
			upTo += count
			bound := "+Inf"
			if i < len(point.GetExplicitBounds()) {
				bound = fmt.Sprint(point.GetExplicitBounds()[i])
			}
			p.Series[series(name+"_bucket", point.GetAttributes(), "le", bound)] = float64(upTo)
		}
		p.Series[series(name+"_count", point.GetAttributes())] = float64(point.GetCount())
		p.Series[series(name+"_sum", point.GetAttributes())] = point.GetSum()
	}
	for _, point := range m.GetExponentialHistogram().GetDataPoints() {
		p.Native++
		p.Series[series(name+"_count", point.GetAttributes())] = float64(point.GetCount())
		p.Series[series(name+"_sum", point.GetAttributes())] = point.GetSum()
	}
}

// series returns the name of a series as Prometheus's text format writes it, with the labels sorted by name. more holds
// further label names and values, which follow in the given order.
func series(name string, attributes []*common.KeyValue, more ...string) string {
	var labels []string
	for _, a := range attributes {
		labels = append(labels, fmt.Sprintf("%s=%q", a.GetKey(), a.GetValue().GetStringValue()))
	}
	slices.Sort(labels)
	for pair := range slices.Chunk(more, 2) {
		labels = append(labels, fmt.Sprintf("%s=%q", pair[0], pair[1]))
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}
