//go:build !redisonly

package watch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// The tag redisonly excludes this file because OpenTelemetry's exporter depends on gRPC.
func init() { newPusher = newOTLP }

// otlp pushes with OpenTelemetry's SDK, which reads its environment variables itself.
type otlp struct {
	to       receiver
	exporter *otlpmetrichttp.Exporter
	resource *resource.Resource
	provider *sdk.MeterProvider // nil before start
	warn     func(string)
	once     sync.Once
}

// newOTLP returns a pusher. It returns an error if one of OpenTelemetry's environment variables has a value that
// OpenTelemetry would ignore.
func newOTLP(to receiver) (pusher, error) {
	ignored := &logged{}
	otel.SetLogger(logr.New(ignored))
	// Each push sends all figures, so a failed push matters only if it is the last one. Retries therefore end after
	// lastPush.
	exporter, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{
		Enabled: true, InitialInterval: lastPush / 10, MaxInterval: lastPush / 3, MaxElapsedTime: lastPush,
	}))
	if err != nil {
		return nil, fmt.Errorf("prepare the OTLP exporter: %w", err)
	}
	host, _ := os.Hostname() // "" if unknown
	about, err := resource.New(context.Background(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "lockbench"),
		attribute.String("service.instance.id", fmt.Sprintf("%s:%d", host, os.Getpid())),
	), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetLogger(logr.Discard())
	if err := ignored.errors(); err != nil {
		return nil, fmt.Errorf("an OTEL_EXPORTER_OTLP_* variable is invalid: %w", err)
	}
	return &otlp{to: to, exporter: exporter, resource: about}, nil
}

func (o *otlp) start(from *metrics, warn func(string)) {
	_, native := o.exporter.Aggregation(sdk.InstrumentKindHistogram).(sdk.AggregationBase2ExponentialHistogram)
	from.classic = !native
	o.warn = warn
	otel.SetErrorHandler(otel.ErrorHandlerFunc(o.failed)) // of pushes before the last one
	reader := sdk.NewPeriodicReader(o.exporter,
		sdk.WithInterval(o.to.interval), sdk.WithTimeout(max(lastPush, o.to.interval)),
		sdk.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(from.registry))))
	o.provider = sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithResource(o.resource))
}

func (o *otlp) close() {
	if o.provider == nil {
		return
	}
	within, cancel := context.WithTimeout(context.Background(), lastPush)
	defer cancel()
	if err := o.provider.Shutdown(within); err != nil {
		o.failed(err)
	}
}

// failed warns about the first push that fails. The runs continue without the receiver.
func (o *otlp) failed(err error) {
	if errors.Is(err, context.Canceled) { // close ends a push under way
		return
	}
	o.once.Do(func() {
		o.warn(fmt.Sprintf("--metrics: %s did not accept a push and may lack some metrics: %s", o.to.address,
			withoutCredentials(err.Error())))
	})
}

// withoutCredentials removes the values of the configured headers from an error. The receiver's response, which the
// error may quote, can contain them.
func withoutCredentials(text string) string {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"} {
		for pair := range strings.SplitSeq(os.Getenv(name), ",") {
			_, value, _ := strings.Cut(pair, "=")
			plain, _ := url.PathUnescape(value)
			for _, secret := range append(strings.Fields(plain), strings.TrimSpace(value)) {
				if secret != "" {
					text = strings.ReplaceAll(text, secret, "***")
				}
			}
		}
	}
	return text
}

// logged collects the errors that OpenTelemetry logs. It omits the logged values, which may be credentials.
type logged struct {
	mu  sync.Mutex
	all []error
}

func (l *logged) errors() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.all...)
}

// Init does nothing. The interface logr.LogSink requires it.
func (*logged) Init(logr.RuntimeInfo) {}

// Enabled returns false, so that only errors are logged.
func (*logged) Enabled(int) bool { return false }

// Info does nothing, because only errors are collected.
func (*logged) Info(int, string, ...any) {}

// Error stores an error that OpenTelemetry logs, without the logged values.
func (l *logged) Error(err error, message string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, fmt.Errorf("%s: %w", message, err))
}

// WithValues ignores the values, which may be credentials.
func (l *logged) WithValues(...any) logr.LogSink { return l }

// WithName ignores the name of the logger, which the errors do not need.
func (l *logged) WithName(string) logr.LogSink { return l }
