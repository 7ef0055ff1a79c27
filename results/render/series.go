package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// option is a workload option in a name that must distinguish workloads.
type option struct{ name, value string }

// unnamed are the options that names leave out: how much is measured, the number of
// connections, and clients, which every name has in another place.
var unnamed = []string{"clients", "duration", "iterations", "warmup", "seed", "pool"}

// named is the order of the other options in names. New ones come last: a history is found by
// its names.
var named = []string{
	"instances", "keys", "key-dist", "rate", "arrivals", "stage", "gather", "hold", "think", "ttl", "timeout", "work", "fence", "fault", "coalesce",
}

// differing returns the options, other than clients, in which a workload differs from the
// default.
func differing(w workloads.Spec) []option {
	usual := workloads.Default()
	usual.Instances = max(1, min(usual.Instances, w.Clients))
	given, otherwise := w.Given(), usual.Given()
	var options []option
	for _, field := range namedFields() {
		values := given[field.Name]
		if slices.Equal(values, otherwise[field.Name]) || field.Name == "arrivals" && w.Rate == 0 {
			continue
		}
		name := field.Name
		if field.List {
			name += "s"
		}
		options = append(options, option{name, field.Join(values)})
	}
	return options
}

func namedFields() []workloads.Field {
	fields := slices.DeleteFunc(workloads.Fields(), func(f workloads.Field) bool { return slices.Contains(unnamed, f.Name) })
	place := func(f workloads.Field) int {
		if at := slices.Index(named, f.Name); at >= 0 {
			return at
		}
		return len(named)
	}
	slices.SortStableFunc(fields, func(a, b workloads.Field) int { return cmp.Compare(place(a), place(b)) })
	return fields
}

// series is the name by which histories follow a strategy under a workload:
// pubsub/c500/hold=1ms.
func series(s results.Summary) string {
	name := []string{s.Name, "c" + strconv.Itoa(s.Workload.Clients)}
	for _, o := range differing(s.Workload) {
		name = append(name, o.name+"="+strings.ReplaceAll(o.value, "/", "|"))
	}
	if _, server := results.CutServer(s.Point); server != "" {
		name = append(name, results.ServerLabel+strings.ReplaceAll(server, "/", "|"))
	}
	return strings.Join(name, "/")
}

// point is a metric of a series: the median of the runs, or their sum, with its interval.
type point struct {
	results.Metric
	value, low, high float64
	runs             int
}

// points returns the tracked metrics that are known exactly. A chart would show a lower bound
// as a value.
func points(s results.Summary) []point {
	var all []point
	for _, m := range results.TrackedMetrics() {
		if f := s.Figure(m); f != nil && !f.AtLeast {
			low, high := s.Interval(m)
			all = append(all, point{m, f.Value, low, high, len(s.Figures(m))})
		}
	}
	return all
}

// rounded6 keeps six significant digits: more would only be noise in a stored file.
func rounded6(x float64) float64 {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	return x
}
