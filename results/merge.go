package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Generated holds the report of one generator of a session and, if some of the generator's records are missing, the
// reason.
type Generated struct {
	Name    string // "generator 0"
	Missing string // why its last record, or those of some runs, are missing
	*Report        // its record of itself and of each run; nil without any record
}

// Merge returns one report about the clients of all generators. It adds up the records of each run (see Run.Add). It
// fails if no generator has a report.
func Merge(parts []Generated) (*Report, error) {
	first := slices.IndexFunc(parts, func(p Generated) bool { return p.Report != nil })
	if first < 0 {
		return nil, errors.New("no generator recorded a run")
	}
	merged := frame(parts, parts[first].Report)
	indexes := make([]map[runKey]int, len(parts))
	for i, p := range parts {
		indexes[i] = p.index()
	}
	known := map[runKey]bool{}
	for _, p := range parts {
		if p.Report == nil {
			continue
		}
		for _, run := range p.Runs {
			key := keyOf(run)
			if known[key] {
				continue
			}
			known[key] = true
			sum, recorded := add(parts, indexes, key)
			each, strategy := parts[first].WorkloadOf(run), strategyOf(parts[first].Report, run)
			sum.Point = relabelled(run.Point, each, each.Times(len(parts), 1))
			sum.Record.Contended = contended(strategy, each)
			sum.Compute()
			sum.Labels = append(sum.Labels, sum.ShortOfARound()...)
			why := sum.compare(recorded, strategy)
			if why != "" && sum.unaudited() && sum.Valid() {
				merged.Warnings = merged.Warnings.Once(AuditedApart.Remark(run.Strategy, why))
			}
			if lost := sum.Safety.LostUpdates; lost != nil && *lost > 0 && strategy.claims("exclusion") &&
				sum.Safety.Overlaps+sum.Safety.ExpiredOverlaps+sum.Safety.LostLeases == 0 {
				sum.Safety.Broken = append(sum.Safety.Broken, UpdatesLost.Remark(*lost))
			}
			if len(sum.Safety.LostKeys) > 0 { // as in a run of one generator
				slices.Sort(sum.Safety.LostKeys)
				sum.Safety.LostKeys = slices.Compact(sum.Safety.LostKeys)
				sum.Safety.Broken = nil
			}
			merged.Runs = append(merged.Runs, sum)
		}
	}
	return merged, nil
}

// enough is a share of a window. If all generators measured together for less than this share, the merged run is
// invalid, because the generators measured under different loads.
const enough = 0.9

// nearlyAll is a share of a window. If all generators measured together for less than this share, the merged run has
// the label WindowsApart.
const nearlyAll = 0.99

// add returns the sum of the generators' records of one run, and the records themselves. It determines on the server's
// clock how long their windows overlap.
func add(parts []Generated, indexes []map[runKey]int, key runKey) (sum Run, recorded []Run) {
	var longest int64
	var opened, closed time.Time
	var missing Remarks
	labelled := map[string][]string{} // the names of the generators that have a label
	begun := false
	for i, p := range parts {
		name := p.Name
		at, found := indexes[i][key]
		if !found {
			missing = append(missing, RecordMissing.Remark(name, cmp.Or(p.Missing, "has no record of it")))
			continue
		}
		run := p.Runs[at]
		recorded = append(recorded, run)
		end := run.Started.Add(time.Duration(run.WindowNS))
		longest = max(longest, run.WindowNS)
		claims, invalid, failure := run.Safety.Broken, run.Invalid, run.Failure
		run.Safety.Broken, run.Invalid, run.Failure = nil, nil, ""
		if !begun {
			sum, opened, closed, begun = run, run.Started, end, true
			sum.Labels = nil
		} else {
			sum.Add(run)
		}
		if end.Before(closed) {
			closed = end
		}
		if run.Started.After(opened) {
			opened = run.Started
		}
		for _, claim := range claims {
			sum.Safety.Broken = append(sum.Safety.Broken, claim.of("", name, " (seen by "+name+")"))
		}
		for _, why := range invalid {
			sum.Invalid = append(sum.Invalid, why.of(name+": ", name, ""))
		}
		if failure != "" && sum.Failure == "" {
			sum.Failure = name + ": " + failure
		}
		for _, label := range run.Labels {
			switch label.Code {
			case PartOfASession, ShortOfARound, ShortWindow: // the sum of all generators gets its own labels
			default:
				sum.Labels = sum.Labels.Once(label)
				labelled[label.Text] = append(labelled[label.Text], name)
			}
		}
	}
	for i, label := range sum.Labels {
		switch of := labelled[label.Text]; len(of) {
		case len(recorded):
		case 1:
			sum.Labels[i] = label.of("", of[0], " in "+of[0])
		default:
			some := fmt.Sprintf("%d of %d generators", len(of), len(recorded))
			sum.Labels[i] = label.of("", some, " in "+some)
		}
	}
	other := generatorWithOtherServers(parts)
	if other != "" {
		sum.Invalid = append(sum.Invalid, OtherServers.Remark(other))
	}
	if other != "" || len(missing) > 0 { // another lock, or its leases and increments are not recorded
		sum.Record.Counted, recorded = nil, append(recorded, Run{})
		sum.Record.Generators = int64(len(parts))
	}
	if len(missing) > 0 { // its clients may not have released, which is not the strategy's fault
		sum.Safety.Leftovers, sum.Safety.LeftoverCount = nil, nil
	}
	sum.Started = opened
	sum.Invalid = append(sum.Invalid, missing...)
	overlap := max(0, closed.Sub(opened))
	switch common := float64(overlap) / float64(longest); {
	case common < enough:
		sum.Invalid = append(sum.Invalid, NotTogether.Remark(overlap, time.Duration(longest)))
	case common < nearlyAll:
		sum.Labels = append(sum.Labels, WindowsApart.Remark(Measured(common*100, "%.1f%%")))
	}
	if sum.Speed.Acquisitions == 0 && sum.Valid() {
		sum.Invalid = append(sum.Invalid, NoAcquisition.Remark())
	}
	return sum, recorded
}

// contended reports whether it is certain that a client always waited. No generator sees the waiters of another, so
// this is certain only for a lock of capacity one on a single key, whose clients do not pause, time out, share leases
// or end early.
func contended(s Strategy, each workloads.Spec) bool {
	return slices.Contains(s.Claims, "exclusion") && s.Capacity == 1 && each.Keys == 1 && each.Rate == 0 &&
		len(each.Stages) == 0 && each.Think.IsZero() && each.Timeout == nil && !each.Coalesce && each.Iterations == 0
}

// strategyOf returns the strategy of a run; the zero Strategy if the report does not list it.
func strategyOf(f *Report, run Run) Strategy {
	i := slices.IndexFunc(f.Strategies, func(s Strategy) bool { return s.Name == run.Strategy })
	if i < 0 {
		return Strategy{}
	}
	return f.Strategies[i]
}

// claims reports whether the strategy promises a guarantee, and is not unsafe by design.
func (s Strategy) claims(guarantee string) bool {
	return s.Caveat == "" && slices.Contains(s.Claims, guarantee)
}

// frame returns the merged report without its runs.
func frame(parts []Generated, first *Report) *Report {
	n := len(parts)
	merged := &Report{
		Schema: Schema, Tool: first.Tool, Started: first.Started, Finished: first.Finished,
		Environment: first.Environment, Redis: first.Redis, Stores: first.Stores,
		Workload: first.Workload.Times(n, 1), Rounds: first.Rounds, LeftOut: first.LeftOut,
	}
	for _, p := range first.Points {
		w := p.Workload.Times(n, 1)
		merged.Points = append(merged.Points, workloads.Point{Label: relabelled(p.Label, p.Workload, w), Workload: w})
	}
	for _, s := range first.Strategies {
		s.Instances *= n
		merged.Strategies = append(merged.Strategies, s)
	}
	var troubles []string
	for _, f := range parts {
		if f.Missing != "" {
			troubles = append(troubles, f.Name+" "+f.Missing)
		}
		if f.Report == nil {
			continue
		}
		p := GeneratorPart{
			Generator: f.Name, UncertaintyNS: f.Shared.UncertaintyNS, Tool: f.Tool, Environment: f.Environment,
			Baselines: f.Baselines, Seed: f.Workload.Seed, Started: f.Started, Finished: f.Finished,
		}
		for _, run := range f.Runs {
			p.Acquisitions += run.Speed.Acquisitions
		}
		merged.Generators = append(merged.Generators, p)
		if f.Started.Before(merged.Started) {
			merged.Started = f.Started
		}
		if f.Finished.After(merged.Finished) {
			merged.Finished = f.Finished
		}
		merged.Interrupted = merged.Interrupted || f.Interrupted
		merged.Unreachable = merged.Unreachable || f.Unreachable
		of := func(p Generated) bool { return f.Error == p.Name+" "+p.Missing }
		if f.Error != "" && !slices.ContainsFunc(parts, of) {
			troubles = append(troubles, f.Name+": "+f.Error)
		}
		merged.Warnings = merged.Warnings.Once(f.Warnings...)
	}
	merged.Error = strings.Join(troubles, "; ")
	return merged
}

// relabelled returns the label of a sweep's point with the values of after in place of those of before. The workloads
// before and after differ because merging multiplies options such as the number of clients.
func relabelled(label string, before, after workloads.Spec) string {
	words, was, is := strings.Fields(label), before.Given(), after.Given()
	for i, word := range words {
		if name, _, _ := strings.Cut(word, "="); !slices.Equal(was[name], is[name]) {
			words[i] = name + "=" + strings.Join(is[name], ",")
		}
	}
	return strings.Join(words, " ")
}

// generatorWithOtherServers returns the name of a generator that measured different servers from the first generator;
// "" if there is none.
func generatorWithOtherServers(parts []Generated) string {
	var first *Generated
	for i, p := range parts {
		switch {
		case p.Report == nil || p.Shared == nil:
		case first == nil:
			first = &parts[i]
		case !slices.Equal(slices.Sorted(slices.Values(first.Shared.RedisRuns)),
			slices.Sorted(slices.Values(p.Shared.RedisRuns))):
			return p.Name
		}
	}
	return ""
}

// runKey identifies a run within a session: the reports of all generators have it under the same key.
type runKey struct {
	title string
	round int
}

func keyOf(run Run) runKey { return runKey{run.Title(), run.Round} }

// index maps the key of each run to its position in the generator's report. If a key occurs twice, the first run
// counts.
func (p Generated) index() map[runKey]int {
	at := map[runKey]int{}
	if p.Report == nil {
		return at
	}
	for i, run := range p.Runs {
		if _, had := at[keyOf(run)]; !had {
			at[keyOf(run)] = i
		}
	}
	return at
}
