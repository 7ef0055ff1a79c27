package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/words"
)

// Threshold is a limit that a figure must keep, in k6's grammar:
//
//	wait:p(99)<50ms                      for every strategy
//	wait{strategy:pubsub}:p(99)<50ms     for one strategy, or for all its variants
//	redis_cpu_per_acq<80us
//	violations==0
//
// A metric that is a distribution of durations needs one of the aggregations med, max and p(N); the
// other metrics are single figures.
type Threshold struct {
	Expression string // as written
	Strategy   string // the strategy that it applies to; "" for all

	metric Metric
	limit  Limit
	// of is the path of a distribution if the metric is one of its percentiles or, with a percentile of 0, its maximum.
	// For any other metric, of is "".
	of         string
	percentile float64
}

// grammar matches the metric, the selector, the aggregation with its colon, and the limit.
var grammar = regexp.MustCompile(`^(\w+)\s*(\{[^}]*\})?\s*(:[^<>=!]*)?([<>=!].*)$`)

// ParseThreshold parses a threshold. Its error names every mistake.
func ParseThreshold(text string) (Threshold, error) {
	t := Threshold{Expression: strings.TrimSpace(text)}
	parts := grammar.FindStringSubmatch(t.Expression)
	if parts == nil {
		return t, fmt.Errorf("%q is not of the form METRIC[{strategy:NAME}][:AGGREGATION]<LIMIT", text)
	}
	name, selector, aggregation, limit := parts[1], parts[2], parts[3], parts[4]
	var problems []error
	if selector != "" {
		tag, value, _ := strings.Cut(strings.Trim(selector, "{}"), ":")
		t.Strategy = strings.TrimSpace(value)
		if strings.TrimSpace(tag) != "strategy" || t.Strategy == "" {
			problems = append(problems, fmt.Errorf("%q: %s is not of the form {strategy:NAME}", text, selector))
		}
	}
	err := t.measure(name, aggregation)
	if err == nil {
		t.limit, err = ParseLimit(limit, t.metric.Unit)
	}
	if err != nil {
		problems = append(problems, fmt.Errorf("%q: %w", text, err))
	}
	return t, errors.Join(problems...)
}

// Matches reports whether the threshold applies to a strategy of that name: the strategy itself,
// or a variant of it.
func (t Threshold) Matches(strategy string) bool {
	return t.Strategy == "" || t.Strategy == strategy || strings.HasPrefix(strategy, t.Strategy+":")
}

// distributions returns the paths of the distributions whose percentiles are metrics, by their names in
// thresholds: "wait" for wait_p99.
func distributions() map[string]string {
	all := map[string]string{}
	for _, m := range Metrics() {
		if path, _ := m.percentile(); path != "" {
			all[m.Name[:strings.LastIndex(m.Name, "_p")]] = path
		}
	}
	return all
}

// measure sets the metric that a name and an aggregation select. The aggregation begins with a colon, as in ":p(99)";
// it is empty for a metric that is a single figure.
func (t *Threshold) measure(name, aggregation string) error {
	paths := distributions()
	aggregation, given := strings.CutPrefix(strings.TrimSpace(aggregation), ":")
	if path, known := paths[name]; known {
		if !given {
			return fmt.Errorf("%s needs an aggregation (med, max or p(N)), such as %s:p(99)", name, name)
		}
		return t.aggregate(name, path, strings.TrimSpace(aggregation))
	}
	var known bool
	switch t.metric, known = FindMetric(name); {
	case !known:
		names := slices.Sorted(maps.Keys(paths))
		for _, m := range Metrics() {
			names = append(names, m.Name)
		}
		return fmt.Errorf("there is no metric %s%s (docs/FORMATS.md lists them)", name,
			words.Suggest("%s", name, names))
	case given:
		return fmt.Errorf("%s is a single figure: leave out the aggregation %q", name, aggregation)
	}
	if path, max := strings.CutSuffix(t.metric.path, ".Max"); max {
		t.of = path
	}
	return nil
}

// percentileOf matches an aggregation such as p(99).
var percentileOf = regexp.MustCompile(`^p\((.*)\)$`)

// aggregate sets the metric to max, med or p(N) of the distribution at this path.
func (t *Threshold) aggregate(name, path, aggregation string) error {
	t.metric = Metric{Row: Row{Name: name + ":" + aggregation, Unit: Nanoseconds}, Better: Lower}
	t.of = path
	share := "50"
	switch parts := percentileOf.FindStringSubmatch(aggregation); {
	case aggregation == "max":
		t.metric.path = path + ".Max"
		return nil
	case parts != nil:
		share = parts[1]
	case aggregation != "med":
		return fmt.Errorf("there is no aggregation %q (use med, max or p(N))", aggregation)
	}
	p, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
	if err != nil || !(p > 0 && p <= 100) {
		return fmt.Errorf("p(N) takes a number above 0 and up to 100, not %q", share)
	}
	t.percentile = p
	t.metric.value = func(r Run) any { return distribution(r, path).percentile(p) }
	return nil
}

// distribution returns the distribution of a run at this path; an empty one if there is none.
func distribution(r Run, path string) Distribution {
	d, _ := at(r, path).(Distribution)
	return d
}

// caution returns a remark if the figure is a maximum although some durations had not ended, or a percentile of so few
// durations that it equals their maximum. Otherwise it returns the zero Remark.
func (t Threshold) caution(runs []Run) Remark {
	if t.of == "" {
		return Remark{}
	}
	var open int64
	for _, run := range runs {
		d := distribution(run, t.of)
		if open += d.Censored; t.percentile > 0 && d.samples() > 0 && !d.enough(t.percentile) {
			return LongestOfFew.Remark(d.samples())
		}
	}
	if open == 0 || t.percentile > 0 {
		return Remark{}
	}
	return DurationsNotEnd.Remark(Written(float64(open), Whole(float64(open))))
}

// Limit is a bound for a figure: < 50ms, >= 800/s, == 0.
type Limit struct {
	Text     string // as written
	Operator string
	Value    float64 // in the figure's unit
}

// operators lists each operator before its prefixes, such as "<=" before "<", so that ParseLimit finds the longest
// match.
var operators = []string{"===", "<=", ">=", "==", "!=", "<", ">"}

// ParseLimit parses a limit for a figure in this unit: an operator and a value such as 50ms,
// 800/s, 5%, 2KB, or a plain number.
func ParseLimit(text string, unit Unit) (Limit, error) {
	l := Limit{Text: strings.TrimSpace(text)}
	at := slices.IndexFunc(operators, func(o string) bool { return strings.HasPrefix(l.Text, o) })
	if at < 0 {
		return l, fmt.Errorf("%q has no operator (%s)", l.Text, strings.Join(operators, " "))
	}
	l.Operator = operators[at]
	var err error
	l.Value, err = parseValue(strings.TrimSpace(l.Text[len(l.Operator):]), unit)
	return l, err
}

func parseValue(text string, unit Unit) (float64, error) {
	digits, factor, example := text, 1.0, ""
	switch unit {
	case Nanoseconds:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("the limit must be a duration such as 500us, 50ms or 2s, not %q", text)
		}
		return float64(d), nil
	case PerSecond:
		digits, example = strings.TrimSuffix(text, "/s"), " such as 800/s"
	case Percent:
		digits, example = strings.TrimSuffix(text, "%"), " such as 5%"
	case Bytes:
		example = " such as 2KB"
		for _, u := range slices.Backward(octets) {
			if rest, ok := strings.CutSuffix(text, strings.TrimSpace(u.name)); ok {
				digits, factor = rest, u.from
			}
		}
	}
	x, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("the limit must be a number%s, not %q", example, text)
	}
	return x * factor, nil
}

// Keeps reports whether a figure keeps the limit, and whether the answer is known. The answer may be unknown for a
// lower bound, because the true figure may be any larger value.
func (l Limit) Keeps(f Figure) (kept, known bool) {
	kept = l.holds(f.Value)
	if !f.AtLeast {
		return kept, true
	}
	known = kept == l.holds(math.Inf(1)) && (f.Value > l.Value || kept == l.holds(l.Value))
	return kept && known, known
}

// holds reports whether x keeps the limit: whether the operator contains the sign ("<", "=" or ">") that describes how
// x compares with the limit. For "!=" this answer is inverted.
func (l Limit) holds(x float64) bool {
	sign := []string{"<", "=", ">"}[cmp.Compare(x, l.Value)+1]
	return strings.Contains(l.Operator, sign) != (l.Operator == "!=")
}

// Judgement is the result of checking one threshold for one strategy.
type Judgement struct {
	Threshold string  `json:"threshold"`
	Strategy  string  `json:"strategy"` // in a sweep with its point; "" if no measured strategy matched
	Value     *Figure `json:"value"`    // in Unit; nil if not known
	Unit      Unit    `json:"unit"`
	Passed    bool    `json:"passed"`
	Why       Remark  `json:"why,omitzero"` // why the result is unknown, which counts as not passed
	// Caution is a remark that some durations had not ended, or that the figure is a percentile of too few durations.
	Caution Remark `json:"caution,omitzero"`
}

// Judge checks each threshold for each strategy that it matches. In a sweep, it checks each point separately. The
// figure is the median of the valid runs or, for a safety count, the sum of all runs. If it is not known, the threshold
// does not pass.
func Judge(r *Report, thresholds []Threshold) []Judgement {
	var verdicts []Judgement
	for _, t := range thresholds {
		matched := false
		for _, s := range r.Asked() {
			if t.Matches(s.Name) {
				matched = true
				verdicts = append(verdicts, t.judge(s))
			}
		}
		if !matched {
			verdicts = append(verdicts, Judgement{
				Threshold: t.Expression, Strategy: t.Strategy, Unit: t.metric.Unit,
				Why: NothingMatched.Remark(),
			})
		}
	}
	return verdicts
}

func (t Threshold) judge(s Summary) Judgement {
	v := Judgement{
		Threshold: t.Expression, Strategy: s.Title(), Unit: t.metric.Unit, Value: s.Figure(t.metric),
		Caution: t.caution(s.Used),
	}
	switch {
	case len(s.Runs) == 0:
		v.Why = NotMeasured.Remark()
	case s.Invalid && t.metric.is&summed == 0:
		v.Why = NoValidRun.Remark()
	case v.Value == nil:
		v.Why = FigureNotKnown.Remark()
	default:
		var known bool
		if v.Passed, known = t.limit.Keeps(*v.Value); !known {
			v.Why = OnlyLowerBound.Remark()
		}
	}
	return v
}

// Crossed returns the judgements that did not pass.
func (r *Report) Crossed() []Judgement {
	return slices.DeleteFunc(slices.Clone(r.Thresholds), func(v Judgement) bool { return v.Passed })
}

// String returns the threshold with its strategy and figure, and the reason if the result is unknown.
func (v Judgement) String() string {
	text := v.Threshold
	if v.Strategy != "" {
		text = v.Strategy + ": " + text
	}
	if v.Value != nil {
		figure := v.Value.Text(v.Unit)
		if v.Caution.Text != "" {
			figure += "; " + v.Caution.Text
		}
		text += " (" + figure + ")"
	}
	if v.Why.Text != "" {
		text += ", " + v.Why.Text
	}
	return text
}
