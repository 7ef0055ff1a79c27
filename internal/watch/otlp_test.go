package watch

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// The OTEL variables for metrics must take precedence over those for all signals. An error must show nothing that may
// be a password.
func TestStandardVariablesSetTheReceiver(t *testing.T) {
	t.Parallel()
	const all, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	const protocol, interval = "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_METRIC_EXPORT_INTERVAL"
	for _, test := range []struct {
		set     map[string]string
		address string // "" for an error
		every   time.Duration
	}{
		{nil, "http://localhost:4318", often},
		{map[string]string{all: "https://a/base"}, "https://a", often},
		{map[string]string{all: "https://a", own: " http://b:1/v1/metrics "}, "http://b:1", often},
		{map[string]string{protocol: "http/protobuf", interval: "500"}, "http://localhost:4318", time.Second / 2},
		{
			map[string]string{protocol: "grpc", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf"},
			"http://localhost:4318", often,
		},
		{map[string]string{all: "secret:4317"}, "", 0},
		{map[string]string{all: "http://me:secret@a:4318", own: "http://a"}, "", 0},
		{map[string]string{own: "http://a:4318/?key=secret"}, "", 0},
		{map[string]string{own: "http://a:43 18/secret"}, "", 0},
		{map[string]string{all: "unix:///secret"}, "", 0},
		{map[string]string{protocol: "grpc"}, "", 0},
		{map[string]string{interval: "0"}, "", 0},
		{map[string]string{interval: "2s"}, "", 0},
	} {
		to, problems := namedReceiver(func(name string) string { return test.set[name] })
		err := errors.Join(problems...)
		if test.address == "" {
			if err == nil || !strings.Contains(err.Error(), "OTEL_") || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: %+v, %v", test.set, to, err)
			}
			continue
		}
		if err != nil || to != (receiver{test.address, test.every}) {
			t.Errorf("%v: %+v, %v", test.set, to, err)
		}
	}
}
