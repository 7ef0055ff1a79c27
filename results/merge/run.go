package merge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockbench/lockbench/results"
)

// part is one generator's run.
type part struct {
	generator string
	results.Run
}

// enough of every window has to be common to all, or the figures are of
// different loads.
const enough = 0.9

// common is for how long all windows were open, in nanoseconds; negative when
// they were not.
func common(parts []part) int64 {
	opened, closed := parts[0].Started, end(parts[0])
	for _, p := range parts[1:] {
		if p.Started.After(opened) {
			opened = p.Started
		}
		if end(p).Before(closed) {
			closed = end(p)
		}
	}
	return int64(closed.Sub(opened))
}

func end(p part) time.Time { return p.Started.Add(time.Duration(p.WindowNS)) }

// join is the run of all generators' clients.
func join(parts []part) (results.Run, error) {
	first := parts[0]
	run := results.Run{
		Strategy: first.Strategy, Round: first.Round, Order: first.Order, Seed: first.Seed,
		Started: first.Started, WindowNS: max(0, common(parts)),
		Effort: effort(parts), Server: server(parts), Safety: safety(parts), Generator: generator(parts), Books: books(parts), Timeline: timeline(parts),
		Errors: errorCounts(parts),
	}
	for _, p := range parts {
		if p.Started.After(run.Started) {
			run.Started = p.Started
		}
		run.Partial = run.Partial || p.Partial
		if p.Failure != "" && run.Failure == "" {
			run.Failure = p.generator + ": " + p.Failure
		}
		for _, why := range p.Invalid {
			run.Invalid = append(run.Invalid, p.generator+": "+why)
		}
		for _, label := range p.Labels {
			if label != results.PartOfASession && !slices.Contains(run.Labels, label) {
				run.Labels = append(run.Labels, label)
			}
		}
	}
	longest := slices.MaxFunc(parts, func(a, b part) int { return cmp.Compare(a.WindowNS, b.WindowNS) }).WindowNS
	if float64(run.WindowNS) < enough*float64(longest) {
		run.Invalid = append(run.Invalid, fmt.Sprintf("its generators' windows were open together for %v of %v",
			time.Duration(run.WindowNS).Round(time.Millisecond), time.Duration(longest).Round(time.Millisecond)))
	}
	var err error
	if run.Speed, err = speed(parts); err != nil {
		return run, err
	}
	if run.Speed.Acquisitions == 0 && len(first.Faults) == 0 && run.Valid() {
		run.Invalid = append(run.Invalid, "it had not one acquisition")
	}
	if run.Waiting, err = waiting(parts); err != nil {
		return run, err
	}
	run.Fairness, err = fairness(parts)
	return run, err
}

// speed adds up rates over each generator's own window. Handoffs are not known: the
// next lease after a release may have been another generator's.
func speed(parts []part) (results.Speed, error) {
	var s results.Speed
	for _, p := range parts {
		s.Acquisitions += p.Speed.Acquisitions
		s.PerSecond += p.Speed.PerSecond
		s.Served += p.Speed.Served
		s.ServedPerSecond += p.Speed.ServedPerSecond
		s.Utilisation += p.Speed.Utilisation
	}
	var err error
	if s.Hold, err = pool(parts, "hold", func(r results.Run) results.Distribution { return r.Speed.Hold }); err != nil {
		return s, err
	}
	s.Release, err = pool(parts, "release", func(r results.Run) results.Distribution { return r.Speed.Release })
	return s, err
}

func waiting(parts []part) (results.Waiting, error) {
	var w results.Waiting
	for _, p := range parts {
		w.Open += p.Waiting.Open
		w.Backlog += p.Waiting.Backlog
		w.GaveUp += p.Waiting.GaveUp
	}
	var err error
	if w.PerAcquisition, err = pool(parts, "waits", func(r results.Run) results.Distribution { return r.Waiting.PerAcquisition }); err != nil {
		return w, err
	}
	if w.PerClient, err = pool(parts, "waits per client", func(r results.Run) results.Distribution { return r.Waiting.PerClient }); err != nil {
		return w, err
	}
	if w.Service, err = pool(parts, "service times", func(r results.Run) results.Distribution { return r.Waiting.Service }); err != nil {
		return w, err
	}
	w.Lateness, err = pool(parts, "late starts", func(r results.Run) results.Distribution { return r.Waiting.Lateness })
	return w, err
}

func pool(parts []part, what string, of func(results.Run) results.Distribution) (results.Distribution, error) {
	var all []results.Distribution
	for _, p := range parts {
		all = append(all, of(p.Run))
	}
	pooled, err := results.Pool(all)
	if err != nil {
		return pooled, fmt.Errorf("%s: %w", what, err)
	}
	return pooled, nil
}

// fairness is recomputed from every client's turns. What happened in between is
// known of each generator's clients among themselves only, and left out.
func fairness(parts []part) (results.Fairness, error) {
	f := results.Fairness{TurnsMin: parts[0].Fairness.TurnsMin}
	turns := results.NewTurnsHistogram()
	f.Starved = sum(each(parts, func(p part) *int { return p.Fairness.Starved }))
	for _, p := range parts {
		from := p.Fairness
		f.TurnsMin, f.TurnsMax = min(f.TurnsMin, from.TurnsMin), max(f.TurnsMax, from.TurnsMax)
		f.LongestWait = results.Longest(f.LongestWait, from.LongestWait)
		f.LargestBypass = max(f.LargestBypass, from.LargestBypass) // among those of one
		h, err := from.TurnsHistogram()
		if err != nil {
			return f, fmt.Errorf("%s: %w", p.generator, err)
		}
		if h == nil { // slots of an open loop, of which nothing is said
			return f, nil
		}
		turns.Merge(h)
	}
	f.Jain = jain(turns)
	return f, f.SetTurns(turns)
}

// errorCounts adds up equal errors, the most frequent first.
func errorCounts(parts []part) []results.ErrorCount {
	counts := map[string]int64{}
	for _, p := range parts {
		for _, e := range p.Errors {
			counts[e.Error] += e.Count
		}
	}
	var all []results.ErrorCount
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, results.ErrorCount{Error: text, Count: counts[text]})
	}
	slices.SortStableFunc(all, func(a, b results.ErrorCount) int { return cmp.Compare(b.Count, a.Count) })
	return all
}
