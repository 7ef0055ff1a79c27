package observe

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// Threshold is a limit for the sum of a count over all locks, such as unsafe_releases==0.
type Threshold struct {
	expression string
	field      int // index of the field of Counts
	limit      results.Limit
}

var grammar = regexp.MustCompile(`^(\w+)\s*([<>=!].*)$`)

// CountNames returns the names of the counts, in the order of Counts.
func CountNames() []string {
	counts := reflect.TypeFor[Counts]()
	names := make([]string, counts.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(counts.Field(i).Tag.Get("json"), ",")
	}
	return names
}

// ParseThresholds parses thresholds. Its error joins the errors of all thresholds.
func ParseThresholds(given []string) (all []Threshold, err error) {
	names := CountNames()
	var problems []error
	for _, text := range given {
		t := Threshold{expression: strings.TrimSpace(text)}
		parts := grammar.FindStringSubmatch(t.expression)
		if parts == nil {
			problems = append(problems, fmt.Errorf("%q is not of the form COUNT==NUMBER, such as unsafe_releases==0", text))
			continue
		}
		var unknown, wrong error
		if t.field = slices.Index(names, parts[1]); t.field < 0 {
			unknown = fmt.Errorf("there is no count %s%s (counts: %s)", parts[1], words.Suggest("%s", parts[1], names),
				strings.Join(names, ", "))
		}
		if t.limit, wrong = results.ParseLimit(parts[2], results.Number); wrong != nil {
			wrong = fmt.Errorf("%q: %w", text, wrong)
		}
		problems = append(problems, unknown, wrong)
		all = append(all, t)
	}
	return all, errors.Join(problems...)
}

// Judge compares the counts of all locks with thresholds. A threshold that is not crossed passes only if there is a
// lock and the capture is complete, because missing commands may have crossed it.
func (d *Document) Judge(thresholds []Threshold) {
	counts := reflect.ValueOf(d.All.Counts)
	for _, t := range thresholds {
		value := results.Figure{Value: float64(counts.Field(t.field).Int())}
		j := results.Judgement{Threshold: t.expression, Value: &value, Unit: results.Number}
		kept, _ := t.limit.Keeps(value)
		switch {
		case !kept:
		case d.Cut:
			j.Why = results.PlainText("the capture is not complete: " + d.Stopped)
		case d.Interrupted:
			j.Why = results.PlainText("it was interrupted")
		case d.Unjudged() != "":
			j.Why = results.PlainText(d.Unjudged())
		default:
			j.Passed = true
		}
		d.Thresholds = append(d.Thresholds, j)
	}
}

// Crossed returns the judgements that did not pass.
func (d *Document) Crossed() []results.Judgement {
	return slices.DeleteFunc(slices.Clone(d.Thresholds), func(j results.Judgement) bool { return j.Passed })
}

// Unjudged returns why there is no lock to judge; "" if there is at least one.
func (d *Document) Unjudged() string {
	switch {
	case d.Command != nil && d.Capture.Commands == 0:
		return "the command sent nothing to its Redis, whose address is in REDIS_URL and LOCKBENCH_REDIS"
	case len(d.Locks)+d.Unlisted > 0:
		return ""
	case d.Caches.Keys > 0:
		return fmt.Sprintf("no key is used like a lock; %s (such as %s) could be caches or markers: if they are locks, "+
			"use --prefix", words.Count(d.Caches.Keys, "key"), words.And(d.Caches.Names))
	}
	return "no lock was used"
}
