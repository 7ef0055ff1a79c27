package results

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/suggest"
)

// Threshold is a limit that a figure must keep, in k6's grammar:
//
//	wait:p(99)<50ms                      for every strategy
//	wait{strategy:pubsub}:p(99)<50ms     for one strategy, or for all its variants
//	redis_cpu_per_acq<80us
//	violations==0
//
// A metric that is a distribution of durations needs one of the aggregations avg, min, med,
// max, p(N) and count; the other metrics are single figures.
type Threshold struct {
	Expression string // as written
	Strategy   string // the strategy that it applies to; "" for all

	metric Metric
	limit  Limit
}

// ParseThreshold parses a threshold and names every error in it.
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{Expression: strings.TrimSpace(text)}
	rest := t.Expression
	end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	if end < 0 {
		end = len(rest)
	}
	if end == 0 {
		return t, fmt.Errorf("%q is not of the form METRIC[{strategy:NAME}][:AGGREGATION]<LIMIT", text)
	}
	name := rest[:end]
	rest = rest[end:]

	var problems []error
	if selector, ok := strings.CutPrefix(rest, "{"); ok {
		inside, after, closed := strings.Cut(selector, "}")
		tag, value, _ := strings.Cut(inside, ":")
		value = strings.TrimSpace(value)
		if !closed {
			return t, fmt.Errorf("%q: the { is not closed", text)
		}
		if strings.TrimSpace(tag) != "strategy" || value == "" {
			problems = append(problems, fmt.Errorf("%q: {%s} is not of the form {strategy:NAME}", text, inside))
		}
		t.Strategy, rest = value, after
	}
	at := strings.IndexAny(rest, "<>=!")
	if at < 0 {
		return t, errors.Join(append(problems, noOperator(text))...)
	}
	var err error
	if t.metric, err = aggregated(name, strings.TrimSpace(rest[:at])); err != nil {
		return t, errors.Join(append(problems, fmt.Errorf("%q: %w", text, err))...)
	}
	if t.limit, err = ParseLimit(rest[at:], t.metric.Unit); err != nil {
		problems = append(problems, fmt.Errorf("%q: %w", text, err))
	}
	return t, errors.Join(problems...)
}

// Matches says whether the threshold applies to a strategy of that name: the strategy itself,
// or a variant of it.
func (t Threshold) Matches(strategy string) bool {
	return t.Strategy == "" || t.Strategy == strategy || strings.HasPrefix(strategy, t.Strategy+":")
}

// ThresholdMetrics returns the names with which a threshold may begin: distributions, which
// take an aggregation, and single figures, which do not.
func ThresholdMetrics() (durations, single []string) {
	for _, d := range distributions() {
		durations = append(durations, d.name)
	}
	for _, m := range Metrics() {
		single = append(single, m.Name)
	}
	return durations, single
}

// aggregated returns the metric for a name and an aggregation. The aggregation begins with
// its colon; it may be empty.
func aggregated(name, aggregation string) (Metric, error) {
	kinds := distributions()
	at := slices.IndexFunc(kinds, func(d durations) bool { return d.name == name })
	aggregation, given := strings.CutPrefix(aggregation, ":")
	aggregation = strings.TrimSpace(aggregation)
	if at < 0 {
		m, known := FindMetric(name)
		switch {
		case !known:
			return m, fmt.Errorf("there is no metric %s%s (docs/FORMATS.md lists them)", name, suggest.Question("%s", name, slices.Concat(ThresholdMetrics())))
		case given || aggregation != "":
			return m, fmt.Errorf("%s is a single figure and takes no %q", name, aggregation)
		}
		return m, nil
	}
	of := kinds[at].of
	m := Metric{Name: name + ":" + aggregation, Unit: Nanoseconds, Better: Lower}
	m.caution = unfinished(of)
	share, percentile := strings.CutPrefix(aggregation, "p(")
	switch {
	case !given:
		return m, fmt.Errorf("%s needs an aggregation: %s:p(99), or avg, min, med, max, count", name, name)
	case aggregation == "count":
		m.Unit, m.caution = Number, nil
		m.value = always(func(r Run) int64 { return of(r).Count })
	case aggregation == "avg":
		m.value = func(r Run) *Figure { return of(r).mean() }
	case aggregation == "min":
		m.value, m.caution = func(r Run) *Figure { return of(r).least() }, nil
	case aggregation == "med":
		m.value, m.caution = timed(func(r Run) *Bound { return of(r).P50 }), tooFew(of, 50)
	case aggregation == "max":
		m.value = timed(func(r Run) *Bound { return of(r).Max })
	case percentile && strings.HasSuffix(share, ")"):
		p, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(share, ")")), 64)
		if err != nil || !(p > 0 && p <= 100) {
			return m, fmt.Errorf("p(N) takes a number above 0 and up to 100, not %q", strings.TrimSuffix(share, ")"))
		}
		m.value, m.caution = timed(func(r Run) *Bound { return of(r).percentile(p) }), tooFew(of, p)
	default:
		return m, fmt.Errorf("there is no aggregation %q (avg, min, med, max, p(N), count)", aggregation)
	}
	return m, nil
}

// mean is the mean of all durations. It uses the curve if some were not seen from beginning to
// end.
func (d Distribution) mean() *Figure {
	if d.MeanNS != nil && d.Censored == 0 && d.EnteredHistogram == "" {
		return &Figure{Value: *d.MeanNS}
	}
	s, err := d.Survival()
	if err != nil {
		return nil
	}
	mean := s.Mean()
	if mean != nil && d.Overflow > 0 { // such durations count as the histogram's largest value
		mean.AtLeast = true
	}
	return mean
}

// least returns the shortest duration; nil without histograms.
func (d Distribution) least() *Figure {
	o, err := d.Observations()
	if err != nil || o.Ended == nil {
		return nil
	}
	return &Figure{Value: float64(o.Ended.Min())}
}

// percentile returns nil if the percentile is not in the report and there are no histograms.
func (d Distribution) percentile(p float64) *Bound {
	switch p {
	case 50:
		return d.P50
	case 90:
		return d.P90
	case 95:
		return d.P95
	case 99:
		return d.P99
	case 99.9:
		return d.P999
	}
	s, err := d.Survival()
	if err != nil {
		return nil
	}
	return s.Quantile(p / 100)
}
