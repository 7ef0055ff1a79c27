package findings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// broken reports the guarantees that a strategy claims but broke.
func broken(s results.Summary) []Finding {
	claims, n := collect(s, func(r results.Run) []results.Phrase { return phrases(r.Safety.Broken) })
	if n == 0 {
		return nil
	}
	var in results.Phrase
	if len(s.Runs) > 1 {
		in = results.Phrasef(" in %s of %s runs", n, len(s.Runs))
	}
	return say("broke its claims%s: %s", in, once(claims))
}

// unclaimedOverlaps reports overlaps of strategies that broke no claim.
func unclaimedOverlaps(s results.Summary) []Finding {
	// If the server lost keys, the lock is not to blame for the overlaps. Such a run is invalid, and its remark names the
	// loss.
	lost := func(r results.Run) bool { return len(r.Safety.LostKeys) > 0 }
	if broken(s) != nil || slices.ContainsFunc(s.Runs, lost) {
		return nil
	}
	return counted("overlaps", "time", "granted the lock to too many clients at once %s")(s)
}

// counted returns a function that reports a strategy if its figure for the named metric is above 0.
func counted(name, noun, text string) about {
	return func(s results.Summary) []Finding {
		if f := s.Figure(results.MustMetric(name)); f != nil && f.Value > 0 {
			count := results.Phrasef("%s", results.CountOf(int(f.Value), noun))
			if f.AtLeast { // some runs do not know it
				count = results.Phrasef("at least %s", count)
			}
			return say(text, count)
		}
		return nil
	}
}

// lostUpdates reports lost updates of the counter or row that the lock protects. If the workload releases the lock
// before the commit, the finding blames this order and not the lock.
func lostUpdates(s results.Summary) []Finding {
	text := "lost %s of the counter that the lock protects"
	switch w := s.Workload; {
	case w.Work == workloads.WorkTransaction && w.Release == workloads.ReleaseBeforeCommit:
		text = "lost %s because the lock was released before the commit"
	case w.Work == workloads.WorkTransaction:
		text = "lost %s of the row that the lock protects"
	}
	return counted("lost_updates", "update", text)(s)
}

// unrecovered reports faults after which no client obtained the lock before the window ended.
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
			found = append(found,
				say("after %s of %s of %s no client obtained the lock before the window ended",
					never, results.CountOf(len(injections[name]), "injection"), name)...)
		}
	}
	return found
}

// leftovers reports the keys, channels and connections that a strategy left on the servers without declaring them.
func leftovers(s results.Summary) []Finding {
	count := s.Figure(results.MustMetric("leftovers"))
	if count == nil || count.Value == 0 {
		return nil
	}
	var names []string
	for _, run := range s.Runs {
		names = append(names, run.Safety.Leftovers...)
	}
	n := int(count.Value)
	return say("left %s undeclared %s, %s or %s on %s%s", n, words.Noun(n, "key"),
		words.Noun(n, "channel"), words.Noun(n, "connection"), cmp.Or(s.Store, "Redis"), named(names, n))
}

// mostNamed is the largest number of names that a finding lists.
const mostNamed = 3

// named returns a colon and the first mostNamed names. If all, the number of all names, is larger than the number of
// listed ones, it adds the difference, as in "and 2 more".
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

// byDesign reports the caveat of a lock that is documented as unsafe.
func byDesign(s results.Summary) []Finding { return say("%s", s.Caveat) }

// withoutTokens reports strategies without fencing tokens whose holders updated the counter after their lease had
// expired. The counter cannot refuse such updates, because it recognises a stale update only by its token.
func withoutTokens(s results.Summary) []Finding {
	late := func(run results.Run) bool { return run.Safety.ExpiredOverlaps > 0 && run.Safety.FencedLeases == 0 }
	if s.Workload.Work != workloads.WorkCounter || s.Workload.Fence == workloads.FenceOff ||
		!slices.ContainsFunc(s.Runs, late) {
		return nil
	}
	return say("late holders updated the counter, which cannot recognise them without fencing tokens")
}
