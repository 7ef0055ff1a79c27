package findings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// byDesign is the note of locks that are unsafe by their own words.
const byDesign = "unsafe"

// safety are the rules on what a lock did that it should not do, in runs that cannot be
// trusted too: what was seen once is true.
func safety() []rule {
	return []rule{
		{Kind{Unsafe, "! BROKEN", ""}, perStrategy(broken)},
		{Kind{Sort: Unsafe}, perStrategy(unclaimedOverlaps)},
		{Kind{Sort: Unsafe}, perStrategy(counted("overlaps_after_expiry", "time", "%s a client still worked under a lease that had run out while the next one held the lock"))},
		{Kind{Sort: Unsafe}, perStrategy(counted("lost_updates", "update", "%s of the counter that it was to protect got lost"))},
		{Kind{Sort: Unsafe}, perStrategy(unrecovered)},
		{Kind{Unsafe, "left", ""}, perStrategy(leftovers)},
		{Kind{Unsafe, "no token", ""}, acrossStrategies(withoutTokens)},
		{Kind{Unsafe, byDesign, ""}, perStrategy(func(s results.Summary) []Finding { return say(s.Caveat) })},
	}
}

// broken are guarantees that a strategy gives and did not keep.
func broken(s results.Summary) []Finding {
	claims, n := collect(s, func(r results.Run) []string { return r.Safety.Broken })
	if n == 0 {
		return nil
	}
	in := ""
	if len(s.Runs) > 1 {
		in = fmt.Sprintf(" in %d of %d runs", n, len(s.Runs))
	}
	return say(fmt.Sprintf("broke what it claims%s: %s", in, strings.Join(once(claims), "; ")))
}

// unclaimedOverlaps happened to strategies that do not claim otherwise.
func unclaimedOverlaps(s results.Summary) []Finding {
	if broken(s) != nil {
		return nil
	}
	return counted("overlaps", "time", "let too many hold the lock at once %s")(s)
}

// counted says something of every strategy that has any of what a metric counts.
func counted(name, noun, text string) about {
	return func(s results.Summary) []Finding {
		if f := s.Figure(metric(name)); f != nil && f.Value > 0 {
			return say(fmt.Sprintf(text, words.Count(int(f.Value), noun)))
		}
		return nil
	}
}

// unrecovered are faults after which nobody got the lock any more.
func unrecovered(s results.Summary) []Finding {
	injections := map[string][]results.Injection{}
	for _, run := range s.Runs {
		for _, fault := range run.Faults {
			name := fault.Fault.String()
			injections[name] = append(injections[name], fault.Injections...)
		}
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(injections)) {
		never := 0
		for _, strike := range injections[name] {
			if strike.RecoveryNS == nil {
				never++
			}
		}
		if never > 0 {
			found = append(found, say(fmt.Sprintf("after %d of %s of %s nobody got the lock again within the run's window",
				never, words.Count(len(injections[name]), "injection"), name))...)
		}
	}
	return found
}

// leftovers is what a strategy should have taken with it.
func leftovers(s results.Summary) []Finding {
	count := s.Figure(metric("leftovers"))
	if count == nil || count.Value == 0 {
		return nil
	}
	names, _ := collect(s, func(r results.Run) []string { return r.Safety.Leftovers })
	n := int(count.Value)
	return say(fmt.Sprintf("left %d %s, %s or %s on Redis that it does not declare%s",
		n, words.Noun(n, "key"), words.Noun(n, "channel"), words.Noun(n, "connection"), named(names, n)))
}

// mostNamed are as many of several as are named.
const mostNamed = 3

// named are the first few of so many.
func named(names []string, all int) string {
	if len(names) == 0 {
		return ""
	}
	names = names[:min(len(names), mostNamed)]
	text := ": " + strings.Join(names, ", ")
	if more := all - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// withoutTokens names those whose late holders the counter would have refused if they had
// had tokens: that it refused nobody must not be taken for nothing to refuse.
func withoutTokens(s results.Summary) []Finding {
	late := func(run results.Run) bool { return run.Safety.ExpiredOverlaps > 0 && run.Safety.FencedLeases == 0 }
	if s.Workload.Work != workloads.WorkCounter || s.Workload.Fence == workloads.FenceOff || !slices.ContainsFunc(s.Runs, late) {
		return nil
	}
	return say("late holders wrote, for without fencing tokens the counter cannot tell them")
}
