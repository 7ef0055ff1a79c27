package locktest_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// subject is a locker that the suite is to judge.
type subject struct {
	name string
	info strategies.Info
	open func(goredis.Config) (strategies.Locker, error)
	// impatient is for those whose fault is that something never happens.
	impatient bool

	// What it must be rejected for: the check that is meant for it must say so, with
	// those words, and no promise but this one may be found broken, and such as it
	// cannot help breaking too. All are empty for a lock that is correct.
	check, promise, seen string
	also                 []string
}

const (
	exclusion = 1 << iota
	recovery
	fifo
	fencing
	reentrant
	watchdog
	bounded
)

func claims(c int) strategies.Claims {
	return strategies.Claims{
		Exclusion: c&exclusion != 0, Recovery: c&recovery != 0, FIFO: c&fifo != 0,
		Fencing: c&fencing != 0, Reentrant: c&reentrant != 0, Watchdog: c&watchdog != 0,
		Bounded: c&bounded != 0,
	}
}

// onRedis is a redisLock with a fault.
func onRedis(f fault, claimed int) subject {
	info := strategies.Info{
		Name: "redis", Claims: claims(exclusion | recovery | claimed), Capacity: 1, Nodes: 1,
		Persistent: []string{"{key}:fence"},
		NoCluster:  "its keys are in several slots",
		Limits:     []strategies.Limit{{Check: "clock set forward", Because: "Redis ends leases by its clock"}},
	}
	if !f.polls {
		info.Connections.PerWaiter = 1
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newRedisLock(f, info.Claims.Watchdog, c)
	}}
}

// polling is a redisLock whose waiters poll.
func polling(f fault, claimed int) subject {
	f.polls = true
	return onRedis(f, claimed)
}

// inProcess is a localLock with a fault.
func inProcess(f localFault, permits, claimed int) subject {
	info := strategies.Info{Name: "local", Claims: claims(exclusion | claimed), Capacity: permits, MaxInstances: 1}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newLocalLock(f, permits, c), nil
	}}
}

// inCohorts is a cohortLock with a fault.
func inCohorts(f cohortFault) subject {
	info := strategies.Info{Name: "cohorts", Claims: claims(exclusion | bounded), Capacity: 1}
	shared := &cohorts{keys: map[string]*cohortKey{}}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return &cohortLock{cohortFault: f, shared: shared, config: c}, nil
	}}
}

// ofNodes is a quorumLock with a fault.
func ofNodes(f quorumFault) subject {
	info := strategies.Info{
		Name: "quorum", Claims: claims(exclusion | recovery), Capacity: 1, Nodes: 5, NoCluster: "its nodes are independent",
		Limits: []strategies.Limit{{Check: "clock set forward", Because: "Redis ends leases by its clock"}},
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newQuorumLock(f, c), nil
	}}
}

func (s subject) called(name string) subject { s.name = name; return s }

// keeping declares one more persistent key.
func (s subject) keeping(pattern string) subject {
	s.info.Persistent = append(slices.Clone(s.info.Persistent), pattern)
	return s
}

// onCluster is for one whose keys share a slot.
func (s subject) onCluster() subject { s.info.NoCluster = ""; return s }

// withoutLimits does not say what the lock does not stand.
func (s subject) withoutLimits() subject { s.info.Limits = nil; return s }

// declaring no connections.
func (s subject) declaringNone() subject { s.info.Connections = strategies.Connections{}; return s }

func (s subject) waitingInVain() subject { s.impatient = true; return s }

func (s subject) breaks(check, promise, seen string, also ...string) subject {
	s.check, s.promise, s.seen, s.also = check, promise, seen, also
	return s
}

// fixture is for all tests of one subject: they come one after the other.
func (s subject) fixture(t *testing.T) locktest.Fixture {
	t.Helper()
	f := trial.On(t, s.info.Nodes, s.open)
	f.Rounds, f.Drawings = 6, t.TempDir()
	if s.check == "" || s.check == "moving slot" || s.check == "dying node" || strings.HasPrefix(s.check, "clock set") {
		f = trial.Everything(t, f, s.info.Nodes)
	}
	if s.check != "" && s.check != "failover" {
		f.Failover = nil
	}
	return f
}

// judge runs the check that is meant for the fault once, as users do, or all of them on
// a correct lock, and compares what they find with what they should.
func (s subject) judge(t *testing.T) {
	fixture := s.fixture(t)
	fixture.Patience = s.patience()
	checks := locktest.Checks()
	if s.check != "" {
		checks = []locktest.Check{check(t, s.check)}
	}
	var verdicts []locktest.Verdict
	for _, check := range checks {
		v := check.Judge(t.Context(), fixture, s.info)
		verdicts = append(verdicts, v)
		t.Log(v, v.Took, v.Log)
	}
	for _, wrong := range s.wrong(verdicts) {
		t.Error(wrong)
	}
}

// patience is short for those whose fault has to be waited for.
func (s subject) patience() time.Duration {
	if s.impatient {
		return 8 * time.Second
	}
	return 0
}

// told says whether a check has named the fault.
func (s subject) told(v locktest.Verdict) bool {
	return slices.ContainsFunc(v.Failures, func(f locktest.Failure) bool {
		return f.Check == s.check && f.Promise == s.promise && strings.Contains(f.String(), s.seen)
	})
}

// wrong is what is wrong with the suite's findings.
func (s subject) wrong(verdicts []locktest.Verdict) (wrong []string) {
	for _, v := range verdicts {
		if v.Outcome == locktest.NotTried || v.Outcome == locktest.NotJudged {
			wrong = append(wrong, v.String())
		}
		if v.Outcome == locktest.Admitted {
			continue
		}
		for _, f := range v.Failures {
			if f.Promise != s.promise && !slices.Contains(s.also, f.Promise) {
				wrong = append(wrong, fmt.Sprintf("%s finds broken what is not: %s", f.Check, f))
			}
		}
	}
	if s.check != "" && !slices.ContainsFunc(verdicts, s.told) {
		wrong = append(wrong, fmt.Sprintf("%q does not say %q of it", s.check, s.seen))
	}
	return wrong
}

func TestSuite(t *testing.T) {
	const atATime = 20 // they mostly wait
	subjects := append(correct(), broken()...)
	if n := len(broken()); n < 15 {
		t.Errorf("only %d broken lockers", n)
	}
	slices.SortStableFunc(subjects, func(a, b subject) int { return cmp.Compare(b.weight(), a.weight()) })
	turn := make(chan struct{}, atATime)
	var all sync.WaitGroup
	for _, s := range subjects {
		turn <- struct{}{}
		all.Go(func() {
			defer func() { <-turn }()
			t.Run(s.name, s.judge)
		})
	}
	all.Wait()
}

// weight is larger for what takes longer.
func (s subject) weight() int {
	if s.impatient {
		return s.info.Nodes + 5
	}
	return s.info.Nodes
}

func correct() []subject {
	return []subject{
		onRedis(fault{}, fencing|reentrant|watchdog).called("a correct lock on Redis"),
		polling(fault{}, fencing|reentrant|watchdog).called("a correct lock that is polled"),
		inProcess(localFault{}, 1, fifo|fencing|reentrant).called("a correct lock in the process"),
		inProcess(localFault{}, 3, fifo).called("a correct semaphore"),
		inCohorts(cohortFault{}).called("a correct lock that goes round in an instance"),
		inProcess(localFault{}, 1, bounded).called("a correct lock in the process, that claims less"),
		ofNodes(quorumFault{}).called("a correct quorum"),
		polling(fault{serverFault: serverFault{tags: true}}, 0).onCluster().called("a correct lock for clusters"),
	}
}
