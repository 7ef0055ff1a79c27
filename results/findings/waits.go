package findings

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// gaveUp reports, for each strategy, the share of its waits that ended at their timeout without a lease, as a range
// over all runs and points.
func gaveUp(all []results.Summary) []Finding {
	shares, timeouts := map[string][]float64{}, map[string]bool{}
	var names []string
	for _, s := range all {
		known := givenUp(s)
		if known == nil {
			continue
		}
		if timeout := s.Workload.Timeout; timeout != nil {
			timeouts[timeout.String()] = true
		}
		if shares[s.Name] == nil {
			names = append(names, s.Name)
		}
		shares[s.Name] = append(shares[s.Name], known...)
	}
	if len(names) == 0 {
		return nil
	}
	at := "--timeout"
	if len(timeouts) == 1 {
		at += " " + slices.Collect(maps.Keys(timeouts))[0]
	}
	var each []results.Phrase
	for _, name := range names {
		var known []results.Phrase
		for _, share := range shares[name] {
			known = append(known, results.Phrasef("%s %s %", name, results.Written(share, percent(share))))
		}
		each = append(each, results.Spanned(known))
	}
	return say("waits ended without a lease at "+at+": %s", results.JoinPhrases(each, ", "))
}

// givenUp returns, for each used run, the percentage of its waits that timed out. It returns nil if no wait of any used
// run timed out.
func givenUp(s results.Summary) []float64 {
	var shares []float64
	for _, run := range s.Used {
		ended := run.Waiting.TimedOut + run.Waiting.PerAcquisition.Count
		shares = append(shares, float64(run.Waiting.TimedOut)/float64(max(1, ended))*100)
	}
	if len(shares) == 0 || slices.Max(shares) == 0 {
		return nil
	}
	return shares
}

// percent formats a percentage with two significant digits and no percent sign. Only an exact 0 is written as 0, and
// only an exact 100 as 100.
func percent(share float64) string {
	switch {
	case share > 0 && share < 0.01:
		return "under 0.01"
	case share > 99 && share < 100:
		return "99"
	case share >= 10:
		return fmt.Sprintf("%.0f", share)
	}
	return fmt.Sprintf("%.2g", share)
}
