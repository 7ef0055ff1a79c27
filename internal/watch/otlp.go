package watch

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// OTLP is the value of --metrics that makes lockbench push the metrics to an OTLP receiver. OpenTelemetry's environment
// variables alone start no pushes, because they may be set for other programs.
const OTLP = "otlp"

const (
	// often is the default time between two pushes. Metrics change once a second. OpenTelemetry's default, a minute, is
	// longer than most runs.
	often = 2 * time.Second
	// lastPush limits the duration of the push that Close makes.
	lastPush = 3 * time.Second
)

// receiver is the OTLP receiver that OpenTelemetry's environment variables name. It contains nothing that may be a
// password.
type receiver struct {
	address  string // scheme and host
	interval time.Duration
}

// pusher pushes metrics to a receiver from start until close, which pushes once more.
type pusher interface {
	start(from *metrics, warn func(string))
	close()
}

// newPusher returns a pusher. The variable is nil in a build without OTLP.
var newPusher func(to receiver) (pusher, error)

var errNoOTLP = errors.New("this program is built without OTLP")

// openPusher returns a pusher for the receiver that OpenTelemetry's environment variables name. It does not contact
// that receiver.
func openPusher() (to receiver, p pusher, err error) {
	const flag = "--metrics " + OTLP
	to, problems := namedReceiver(os.Getenv)
	if len(problems) == 0 && newPusher == nil {
		problems = []error{errNoOTLP}
	}
	if len(problems) == 0 {
		if p, err = newPusher(to); err != nil {
			problems = []error{err}
		}
	}
	for i, problem := range problems {
		problems[i] = fmt.Errorf("%s: %w", flag, problem)
	}
	return to, p, errors.Join(problems...)
}

// namedReceiver reads OpenTelemetry's environment variables and checks those variables whose invalid values
// OpenTelemetry would ignore. The errors omit the values that may contain a password.
func namedReceiver(variable func(string) string) (to receiver, problems []error) {
	set := func(names ...string) (name, value string) {
		for _, name := range names {
			if value := strings.TrimSpace(variable(name)); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	to = receiver{interval: often}
	if name, value := set("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); value != "" &&
		value != "http/protobuf" {
		problems = append(problems, fmt.Errorf("%s is %q, but lockbench pushes only by http/protobuf", name, value))
	}
	to.address = "http://localhost:4318"
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"} {
		_, value := set(name)
		if value == "" {
			continue
		}
		at, err := url.Parse(value)
		if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil ||
			at.RawQuery != "" {
			problems = append(problems, fmt.Errorf("%s must be a URL such as http://localhost:4318, without a user, "+
				"password or query; OTEL_EXPORTER_OTLP_HEADERS is for credentials", name))
			continue
		}
		to.address = at.Scheme + "://" + at.Host
	}
	if name, value := set("OTEL_METRIC_EXPORT_INTERVAL"); value != "" {
		ms, err := strconv.ParseInt(value, 10, 32)
		if err != nil || ms <= 0 {
			problems = append(problems, fmt.Errorf("%s must be a positive number of milliseconds, not %q", name, value))
		}
		to.interval = time.Duration(ms) * time.Millisecond
	}
	return to, problems
}
