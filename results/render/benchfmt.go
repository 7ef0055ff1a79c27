package render

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// WriteBenchfmt writes the report in the format of Go's benchmarks, one line per run, for benchstat and similar tools
// (golang.org/design/14313-benchmark-format). The header omits everything that may differ between comparable runs,
// because benchstat would make a separate table for each value. Comment lines name the runs that are left out, with the
// reasons.
func WriteBenchfmt(w io.Writer, r *results.Report) error {
	var b bytes.Buffer
	metrics := results.BenchMetrics()
	for _, line := range [][2]string{
		{"goos", r.Environment.OS},
		{"goarch", r.Environment.Arch},
		{"pkg", "github.com/lockbench/lockbench"},
		{"redis", release(r)},
	} {
		if line[1] != "" {
			fmt.Fprintf(&b, "%s: %s\n", line[0], line[1])
		}
	}
	for _, m := range metrics {
		better, assume := "lower", ""
		if m.Better == results.Higher {
			better = "higher"
		}
		if m.Bench.Exact {
			assume = "assume=exact "
		}
		fmt.Fprintf(&b, "Unit %s %sbetter=%s\n", m.Bench.Unit, assume, better)
	}
	b.WriteByte('\n')
	for _, run := range r.Runs {
		name := benchName(run.Strategy, r.WorkloadOf(run))
		switch {
		case !run.Usable():
			fmt.Fprintf(&b, "# %s, round %d, is left out: %s\n", name, run.Round, why(run))
		case run.Speed.Acquisitions == 0:
			fmt.Fprintf(&b, "# %s, round %d, is left out: no acquisition\n", name, run.Round)
		default:
			fmt.Fprintf(&b, "%s %d %s ns/op", name, run.Speed.Acquisitions,
				benchNumber(float64(run.WindowNS)/float64(run.Speed.Acquisitions)))
			for _, m := range metrics {
				if value, known := m.InBench(run); known {
					fmt.Fprintf(&b, " %s %s", benchNumber(value), m.Bench.Unit)
				}
			}
			b.WriteByte('\n')
		}
	}
	return words.Write(w, "benchmark lines", b.Bytes())
}

// why returns, on one line, the reasons why a run is not usable.
func why(r results.Run) string {
	reasons := r.Invalid.Texts()
	if r.Failure != "" {
		reasons = append(reasons, r.Failure)
	}
	return strings.Join(strings.Fields(strings.Join(reasons, "; ")), " ")
}

// endsInNumber matches the end of a name that benchstat would read as GOMAXPROCS.
var endsInNumber = regexp.MustCompile(`-(\d+)$`)

// release returns Redis's version; "" if some runs used another store, because benchstat would apply the version to
// those runs too.
func release(r *results.Report) string {
	if len(r.Stores) > 0 {
		return ""
	}
	return r.Redis.Release()
}

// benchName returns the name of a benchmark. It always contains strategy, clients, keys and hold. It also contains
// every other option that is not at its default, except those in unnamed.
func benchName(strategy string, w workloads.Spec) string {
	options := [][2]string{
		{"strategy", strategy},
		{"clients", strconv.Itoa(w.Clients)},
		{"keys", strconv.Itoa(w.Keys)},
		{"hold", w.Hold.String()},
	}
	name := "BenchmarkLock"
	for _, o := range append(options, differing(w)...) {
		name += "/" + o[0] + "=" + benchWord.Replace(o[1])
	}
	return endsInNumber.ReplaceAllString(name, "_$1")
}

// benchWord replaces the characters at which tools would split the name of a benchmark.
var benchWord = strings.NewReplacer("/", "|", " ", "_", "\t", "_", "\n", "_")

// benchNumber formats a number with six significant digits, or from 1000 on as a whole number. More digits would only
// be noise in a stored file.
func benchNumber(x float64) string {
	if x >= 1000 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// unnamed lists the options that differing leaves out: those that every name contains, those that state how much is
// measured, the seed, and the number of connections.
var unnamed = []string{"clients", "keys", "hold", "duration", "iterations", "warmup", "seed", "pool"}

// differing returns, with their values, the options in which a workload differs from the default. It omits the options
// in unnamed.
func differing(w workloads.Spec) [][2]string {
	usual := workloads.Default()
	usual.Instances = max(1, min(usual.Instances, w.Clients))
	given, otherwise := w.Given(), usual.Given()
	var options [][2]string
	for _, field := range workloads.Fields() {
		values := given[field.Name]
		if slices.Contains(unnamed, field.Name) || slices.Equal(values, otherwise[field.Name]) ||
			field.Name == "arrivals" && w.Rate == 0 {
			continue
		}
		name := field.Name
		if field.List {
			name += "s"
		}
		options = append(options, [2]string{name, field.Join(values)})
	}
	return options
}
