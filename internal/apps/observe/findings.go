package observe

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// fault describes one kind of lock misuse: the count that reveals the misuse, and the finding that explains it.
type fault struct {
	name string                // JSON name of its count
	says func(c Counts) string // the text of the finding; "" if the lock does not have the fault
}

// faults lists the kinds of misuse in descending order of severity, which is also the order of the findings.
var faults = []fault{
	{"without_ttl", func(c Counts) string {
		return some(c.WithoutTTL, "lease", "has", "have", "no TTL: if the client crashes, the lock stays held forever")
	}},
	{"others_deleted", func(c Counts) string {
		return some(c.OthersDeleted, "delete", "ended", "ended", "the lease of another client: the release does not "+
			"compare the owner before it deletes the lock")
	}},
	{"overwritten", func(c Counts) string {
		return some(c.Overwritten, "SET", "replaced", "replaced", "the lease of another client: the SET has no NX")
	}},
	{"without_nx", func(c Counts) string {
		return some(c.WithoutNX, "lease", "began", "began", "with a SET without NX, which succeeds even if another "+
			"client holds the lock")
	}},
	{"shared_value", func(c Counts) string {
		return some(c.SharedValue, "try", "used", "used", "the value that holds the lock: several clients share "+
			"one value, so a compare before a delete does not protect the lock, and their waits count as one")
	}},
	{"expired", func(c Counts) string {
		if c.LateReleases > 0 {
			return ""
		}
		return expired(c)
	}},
	{"late_releases", func(c Counts) string {
		if c.LateReleases == 0 {
			return ""
		}
		if c.Expired == 0 {
			return some(c.LateReleases, "release", "was", "were", "too late: another client had ended the lease before")
		}
		return fmt.Sprintf("%s; %d of their holders released afterwards, so they worked for longer than the TTL",
			expired(c), c.LateReleases)
	}},
	{"renewals_stopped", func(c Counts) string {
		return some(c.RenewalsStopped, "lease", "was", "were", "renewed but still ended by the TTL: the "+
			"renewals stopped before the release, or the client crashed")
	}},
	{"unsafe_releases", func(c Counts) string {
		return some(c.UnsafeReleases, "release", "deleted", "deleted", "the lock without comparing the owner in the "+
			"same step: a client whose lease has ended can delete the lease of another client")
	}},
	{"ttl_apart", func(c Counts) string {
		return some(c.TTLApart, "lease", "got its TTL", "got their TTL", "by a second command: after a crash between "+
			"the two commands, the lock stays held forever")
	}},
	{"nameless", func(c Counts) string {
		if c.Nameless == 0 {
			return ""
		}
		return "a part of its name is undefined, null or None: a variable had no value, so all clients without " +
			"that value share this lock"
	}},
}

func expired(c Counts) string {
	return some(c.Expired, "lease", "ended", "ended", "by the TTL, not by a release")
}

// noteFaults adds a finding for each fault of each lock, including unlisted locks.
func (d *Document) noteFaults(locks []*key, name func(string) string) {
	for _, f := range faults {
		d.noteOne(f.name, len(locks), func(i int) (about, says string) {
			if says = f.says(locks[i].lock.Counts); says != "" {
				about = name(locks[i].name)
			}
			return about, says
		})
	}
}

// rule returns the text of a finding about a lock's figures; "" if the rule does not apply.
type rule func(l Lock, f *figures) string

// rules lists the rules in descending order of importance, which is also the order of the findings.
var rules = []rule{
	func(l Lock, f *figures) string {
		const enough = 10
		share := percentOf(f.idleCommands, l)
		if l.IdleRelease < enough || share < 1 {
			return ""
		}
		return fmt.Sprintf("%s released nothing and caused %.0f %% of this lock's commands: the client library releases "+
			"after each failed try", words.Count(int(l.IdleRelease), "release"), share)
	},
	func(l Lock, _ *figures) string {
		const much, long = 90, 2
		switch {
		case l.HeldPercent >= much && l.Waiting >= 1:
			return fmt.Sprintf("the lock is held %.0f %% of the time while %s clients wait: only shorter holds or more "+
				"locks shorten the waits", l.HeldPercent, results.Short(l.Waiting))
		case l.Wait.P99 == nil || l.Hold.P50 == nil || l.Gap.P50 == nil || l.Gap.Count < 10:
		case l.Gap.P50.NS > l.Hold.P50.NS/long:
			return fmt.Sprintf("the lock is held %.0f %% of the time, yet one wait in a hundred takes %s: after a release "+
				"it is free for %s (median) although clients wait", l.HeldPercent, l.Wait.P99, l.Gap.P50)
		}
		return ""
	},
	func(l Lock, _ *figures) string {
		const enough = 50
		if failed := l.Tries - l.Acquisitions; l.TriesPer != nil && *l.TriesPer >= 2 && failed >= enough {
			return fmt.Sprintf("%.0f %% of the tries fail because the lock is held; an acquisition takes %s tries on average",
				100*float64(failed)/float64(l.Tries), results.Short(*l.TriesPer))
		}
		return ""
	},
	func(l Lock, _ *figures) string {
		text := some(l.GaveUp, "wait", "ended", "ended", "without the lock: the client stopped trying, so the full "+
			"wait is not known")
		once := some(l.TriedOnce, "value", "was", "were", "tried only once: the client does not wait, or it "+
			"uses a new value for its next tries, so its waits appear shorter by one pause")
		if (l.GaveUp+l.TriedOnce)*100 < l.Tries { // below 1 %
			return ""
		}
		return strings.TrimPrefix(text+map[bool]string{true: "; " + once}[once != ""], "; ")
	},
	func(l Lock, _ *figures) string {
		return some(l.AtStart, "release", "ended", "ended", "a lease that was granted before the capture")
	},
	func(l Lock, _ *figures) string {
		if l.Libraries != handoff {
			return ""
		}
		return "handoff and cohort pass the lock on within a process without Redis: the capture shows only leases " +
			"of processes, each of which covers several leases of clients"
	},
}

// some returns a sentence such as "2 releases were late", which it joins from the count n, the noun, the verb and the
// rest. The verb is one for a count of 1, and many for a larger count. For a count of 0, some returns "".
func some(n int64, noun, one, many, rest string) string {
	if n == 0 {
		return ""
	}
	verb, plural := many, noun+"s"
	if n == 1 {
		verb, plural = one, noun
	} else if noun == "try" {
		plural = "tries"
	}
	return fmt.Sprintf("%s %s %s %s", results.Whole(float64(n)), plural, verb, rest)
}

func percentOf(commands int64, l Lock) float64 {
	return 100 * float64(commands) / float64(max(1, l.Commands))
}

// mostNamed is the largest number of findings that one rule adds. Further locks to which the rule applies are only
// counted.
const mostNamed = 2

// note adds the findings of the rules about the listed locks.
func (d *Document) note(locks []*key) {
	for _, r := range rules {
		d.noteOne("", len(d.Locks), func(i int) (about, says string) {
			return d.Locks[i].Name, r(d.Locks[i], &locks[i].lock.figures)
		})
	}
}

// noteOne adds the findings of one rule or fault for the first mostNamed locks to which it applies. It appends the
// number of further such locks to the last finding.
func (d *Document) noteOne(fault string, locks int, says func(lock int) (about, says string)) {
	found := 0
	for i := range locks {
		about, says := says(i)
		if says == "" {
			continue
		}
		if found++; found <= mostNamed {
			d.Findings = append(d.Findings, Finding{fault, about, says})
		}
	}
	if more := found - mostNamed; more > 0 {
		d.Findings[len(d.Findings)-1].Says += fmt.Sprintf(" (also true of %s)", words.Count(more, "further lock"))
	}
}

// noteAll adds the findings about the whole capture.
func (d *Document) noteAll(all *figures) {
	add := func(format string, args ...any) {
		d.Findings = append(d.Findings, Finding{Says: fmt.Sprintf(format, args...)})
	}
	idle := 100 * float64(all.idleCommands) / float64(max(1, d.Capture.Commands))
	if idle >= 1 && len(d.Locks)+d.Unlisted > 1 {
		add("%s of all locks released nothing and caused %.0f %% of all commands", words.Count(int(all.IdleRelease),
			"release"), idle)
	}
	seconds := time.Duration(d.Capture.Seconds * float64(time.Second))
	if seconds < time.Second && d.Capture.Commands > 0 {
		add("the capture covers only %v: rates and percentiles need a longer capture", seconds.Round(time.Microsecond))
	}
	if all.Open > 0 {
		add("%s open at the end of the capture: percentiles treat open waits as lower bounds",
			map[bool]string{true: "1 wait was", false: fmt.Sprintf("%d waits were", all.Open)}[all.Open == 1])
	}
}
