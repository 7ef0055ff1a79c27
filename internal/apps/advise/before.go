package advise

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
)

// rarely is the percentage of leases with a waiter below which a lock is hardly contended.
const rarely = 5.0

// before returns the sentences on alternatives to a lock and on what to put before it: no lock, a shared
// acquisition, a mutex.
func (q Question) before(m measured, chosen contender, field []contender) []Sentence {
	var all []Sentence
	add := func(s Sentence, ok bool) {
		if ok {
			all = append(all, s)
		}
	}
	add(q.saturated(chosen))
	add(q.consensus(field))
	add(paused(m.Paused))
	s, _ := oneCommand(m.Update)
	add(s, s.Text != "")
	add(sharing(m.Shared))
	for _, c := range field {
		for _, other := range field {
			if c.Name == "gated:"+other.Name {
				all = append(all, q.mutex(c, other))
			}
		}
	}
	all = append(all, sentences([]results.Summary{chosen.Summary}, findings.Before)...)
	add(uncontended(chosen))
	return all
}

// saturated says that under this question a client always wants the lock, so that the mean wait does not
// depend on the lock.
func (q Question) saturated(chosen contender) (Sentence, bool) {
	w := q.Workload
	crowd := float64(w.Clients) * w.KeyDist.Hottest(w.Keys)
	if w.Rate > 0 || !w.Think.IsZero() || w.Timeout != nil || crowd < 2 {
		return Sentence{}, false
	}
	_ = w.Load() // Validate has reported its errors
	held, share := chosen.figure("utilisation")
	s := Sentence{Evidence: []findings.Evidence{held}}
	long := "clients × what the lock itself takes"
	if hold := w.Hold.Mean(); hold > 0 {
		value := results.Figure{Value: crowd * float64(hold)}
		long = fmt.Sprintf("about %s (%d clients × a hold of %v ÷ %s)", value.Text(results.Nanoseconds), w.Clients, hold, words.Count(w.Keys, "key"))
		if w.KeyDist.Hottest(w.Keys)*float64(w.Keys) > 1.01 {
			long += " for the key most wanted"
		}
	}
	s.Text = fmt.Sprintf("The question itself keeps the lock wanted all the time: every client asks again as soon as it has released. The mean wait is then %s, whatever the lock, and locks differ in who bears it; under %s it was held %s of the time. "+
		"Say how often a lock is asked for in fact: --rate for all arrivals a second, or --think for a client's pause.", long, chosen.Name, share)
	return s, held.Value != nil
}

// find returns a strategy in a report.
func find(r *results.Report, name, point string) (contender, bool) {
	if r == nil {
		return contender{}, false
	}
	for _, s := range results.Summarise([]*results.Report{r}) {
		if s.Name == name && s.Point == point && !s.Invalid {
			return contender{Summary: s}, true
		}
	}
	return contender{}, false
}

// lockOf returns the lock in a report, apart from another strategy.
func lockOf(r *results.Report, beside string) string {
	if r == nil {
		return ""
	}
	for _, s := range r.Strategies {
		if s.Name != beside {
			return s.Name
		}
	}
	return ""
}

// oneCommand compares one command with a lock that does the same, and says whether the command is clearly
// better and equally safe.
func oneCommand(r *results.Report) (Sentence, bool) {
	atomic, known := find(r, "atomic", "")
	lock, also := find(r, lockOf(r, "atomic"), "")
	if !known || !also {
		return Sentence{}, false
	}
	speed := criterion{name: "acq_per_s", rounds: r.Rounds}
	apart, ratio := speed.compare(atomic, lock)
	if ratio == nil {
		return Sentence{}, false
	}
	many, count := atomic.figure("acq_per_s")
	few, slower := lock.figure("acq_per_s")
	lostAtomic, none := atomic.figure("lost_updates")
	lostLock, lost := lock.figure("lost_updates")
	many.Than, many.Ratio = lock.Name, ratio
	s := Sentence{Evidence: []findings.Evidence{many, few, lostAtomic, lostLock}}
	s.Text = fmt.Sprintf("What fits into one command or one Lua script needs no lock: %s updates of a value in Redis, under %s %s, which is %s times as many; updates lost: %s and %s.",
		count, lock.Name, slower, ratio, none, lost)
	safe := lostAtomic.Value != nil && lostAtomic.Value.Value == 0
	return s, apart == better && safe
}

// sharing says how much it helps if waiters of an instance share an acquisition; false if it does not.
func sharing(r *results.Report) (Sentence, bool) {
	name := lockOf(r, "")
	apiece, known := find(r, name, alone)
	together, also := find(r, name, shared)
	if !known || !also {
		return Sentence{}, false
	}
	served := criterion{name: "served_per_s", rounds: r.Rounds}
	apart, ratio := served.compare(together, apiece)
	if apart != better {
		return Sentence{}, false
	}
	more, count := together.figure("served_per_s")
	leases, number := together.figure("acq_per_s")
	more.Than, more.Ratio = name+" "+alone, ratio
	return Sentence{
		Text: fmt.Sprintf("Where waiters of an instance want the same result, let them share one acquisition (singleflight): %s clients served with %s leases, %s times as many as with a lease each.",
			count, number, ratio),
		Evidence: []findings.Evidence{more, leases},
	}, true
}

// mutex says what a mutex in each instance changes for a lock.
func (q Question) mutex(gated, plain contender) Sentence {
	s := Sentence{Text: fmt.Sprintf("A mutex in each instance in front of %s, for %d clients an instance:", plain.Name, q.Workload.ClientsPerInstance())}
	var parts []string
	for _, c := range append(q.criteria(), criterion{name: "commands_per_acq", what: "commands per acquisition", lower: true, rounds: q.Rounds}) {
		with, value := gated.figure(c.name)
		lacking, before := plain.figure(c.name)
		if with.Value == nil || lacking.Value == nil {
			continue
		}
		r, ratio := c.compare(gated, plain)
		word := map[relation]string{
			better: "better", slightlyBetter: "slightly better", notApart: "not told apart",
			slightlyWorse: "slightly worse", worse: "worse", unknown: "not to be compared",
		}[r]
		with.Than, with.Ratio = plain.Name, ratio
		s.Evidence = append(s.Evidence, with, lacking)
		parts = append(parts, fmt.Sprintf("%s %s instead of %s (%s)", c.what, value, before, word))
	}
	if len(parts) == 0 {
		s.Evidence = []findings.Evidence{{Strategy: gated.Name, Claims: gated.info.Claims.List()}}
		parts = []string{"it claims " + gated.info.Claims.String()}
	}
	s.Text += " " + strings.Join(parts, ", ") + "."
	return s
}

// uncontended says that clients hardly ever wait.
func uncontended(chosen contender) (Sentence, bool) {
	var handed int64
	for _, run := range chosen.Used {
		handed += run.Speed.Handoff.Count
	}
	granted := leases(chosen.Used)
	if granted == 0 || float64(handed)*100 >= rarely*float64(granted) {
		return Sentence{}, false
	}
	wait, long := chosen.figure("wait_p99")
	return Sentence{
		Text: fmt.Sprintf("The lock is hardly contended: somebody waited at %d of %d releases of %s, and the 99th percentile of the waits is %s. The simplest will do, and so may none.",
			handed, granted, chosen.Name, long),
		Evidence: []findings.Evidence{wait},
	}, true
}

// consensus says what no lock here claims, if correctness is required.
func (q Question) consensus(field []contender) (Sentence, bool) {
	if q.For != Correctness || len(field) == 0 {
		return Sentence{}, false
	}
	s := Sentence{}
	var parts []string
	for _, c := range field {
		s.Evidence = append(s.Evidence, findings.Evidence{Strategy: c.Name, Claims: c.info.Claims.List()})
		parts = append(parts, fmt.Sprintf("%s (%s)", c.Name, c.info.Claims))
	}
	s.Text = fmt.Sprintf("None of these claims to survive the failover of Redis: %s. If the resource cannot check a fencing token at every touch, reads included, use a consensus store such as etcd or ZooKeeper. "+
		"Three members whose leader was killed 10 times lost no update where one failover of Redis lost 4 to 6, and served 3.9 to 11 times less than handoff (lockbench claims 32); syncing is a large part of that (claims 36), etcd's own Mutex hands over in steps of 100 ms (claims 34), and PostgreSQL's advisory locks cost no write (claims 35). "+
		"What it costs here: lockbench --strategy %s,etcd:watch=next,zookeeper --topology etcd:3,zookeeper:3.",
		strings.Join(parts, ", "), field[0].Name)
	return s, true
}

// paused says how many updates were lost when holders paused for longer than the TTL.
func paused(r *results.Report) (Sentence, bool) {
	plain, known := find(r, "spin", "")
	fenced, also := find(r, lockOf(r, "spin"), "")
	if !known || !also {
		return Sentence{}, false
	}
	lost, many := plain.figure("lost_updates")
	kept, few := fenced.figure("lost_updates")
	if lost.Value == nil || kept.Value == nil {
		return Sentence{}, false
	}
	late, overlaps := fenced.figure("overlaps_after_expiry")
	return Sentence{
		Text: fmt.Sprintf("With a holder that pauses for 2 TTLs in each of %d runs, updates lost: %s under spin, whose leases have no token, and %s under %s, whose token the resource checked; overlaps after expiry all the same: %s.",
			len(fenced.Runs), many, few, fenced.Name, overlaps),
		Evidence: []findings.Evidence{lost, kept, late},
	}, true
}
