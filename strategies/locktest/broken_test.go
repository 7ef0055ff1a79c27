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
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/locktest/redisservers"
)

// subject is a locker that the suite is to judge.
type subject struct {
	name string
	info strategies.Info
	open func(goredis.Config) (strategies.Locker, error)

	// What it must be rejected for: the check that is meant for its fault must say so, with those
	// words. No other promise may be found broken, but such as it cannot help breaking too. All are
	// empty for a correct lock.
	check, seen, promise string
	also                 []string
}

// faults are what is wrong with a lock, by name, and traits that are no fault. A lock without faults
// is correct.
type faults map[string]bool

func faultsOf(names string) faults {
	f := faults{}
	for name := range strings.FieldsSeq(names) {
		f[name] = true
	}
	return f
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

func claims(all ...int) (c strategies.Claims) {
	claimed := 0
	for _, one := range all {
		claimed |= one
	}
	for claim, to := range map[int]*bool{
		exclusion: &c.Exclusion, recovery: &c.Recovery, fifo: &c.FIFO, fencing: &c.Fencing,
		reentrant: &c.Reentrant, watchdog: &c.Watchdog, bounded: &c.Bounded,
	} {
		*to = claimed&claim != 0
	}
	return c
}

// byRedis says what locks on Redis do not pass.
var byRedis = []strategies.Limit{{Check: "clock set forward", Because: "Redis ends leases by its clock"}}

// onRedis is a redisLock with faults.
func onRedis(names string, claimed ...int) subject {
	f := faultsOf(names)
	info := strategies.Info{
		Name: "redis", Claims: claims(append(claimed, exclusion, recovery)...), Capacity: 1, Nodes: 1,
		Persistent: []string{"{key}:fence"}, NoCluster: "its keys are in several slots", Limits: byRedis,
	}
	if f["tags"] {
		info.NoCluster = ""
	}
	if !f["polls"] {
		info.Connections.PerWaiter = 1
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newRedisLock(f, info.Claims.Watchdog, c)
	}}
}

// polling is a redisLock whose waiters poll.
func polling(names string, claimed ...int) subject { return onRedis("polls "+names, claimed...) }

// inProcess is a localLock with faults.
func inProcess(names string, permits int, claimed ...int) subject {
	f := faultsOf(names)
	info := strategies.Info{
		Name: "local", Claims: claims(append(claimed, exclusion)...), Capacity: permits, MaxInstances: 1,
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newLocalLock(f, permits, c, &localKeys{keys: map[string]*localQueue{}}), nil
	}}
}

// inCohorts is a localLock of several instances, with faults, that goes round among them.
func inCohorts(names string) subject {
	s, keys := inProcess("", 1, bounded), &localKeys{keys: map[string]*localQueue{}}
	s.info.MaxInstances = 0
	s.open = func(c goredis.Config) (strategies.Locker, error) {
		return newLocalLock(faultsOf("goesRound "+names), 1, c, keys), nil
	}
	return s
}

// ofNodes is a quorumLock with faults.
func ofNodes(names string) subject {
	f := faultsOf(names)
	info := strategies.Info{
		Name: "quorum", Claims: claims(exclusion, recovery), Capacity: 1, Nodes: 5,
		NoCluster: "its nodes are independent", Limits: byRedis,
	}
	return subject{info: info, open: func(c goredis.Config) (strategies.Locker, error) {
		return newQuorumLock(f, c), nil
	}}
}

func (s subject) called(name string) subject { s.name = name; return s }

// but changes what its Info says.
func (s subject) but(change func(*strategies.Info)) subject { change(&s.info); return s }

// fails names the check that must find the fault, and what the check says of it. The promise is the
// check's own, unless breaking says otherwise.
func (s subject) fails(name, seen string) subject {
	checks := locktest.Checks()
	i := slices.IndexFunc(checks, func(c locktest.Check) bool { return c.Name == name })
	s.check, s.promise, s.seen = name, checks[i].Promise, seen
	return s
}

func (s subject) breaking(promise string, also ...string) subject {
	s.promise, s.also = promise, also
	return s
}

// fixture is for all tests of one subject: they come one after the other.
func (s subject) fixture(t *testing.T) locktest.Fixture {
	t.Helper()
	f := redisservers.Fixture(t, s.info.Nodes, s.open)
	f.Rounds, f.Drawings = 6, t.TempDir()
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

// patience is short for faults: most of them have to be waited for.
func (s subject) patience() time.Duration {
	if s.check == "" {
		return 0
	}
	return 8 * time.Second
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
	slices.SortStableFunc(subjects, func(a, b subject) int { return cmp.Compare(b.info.Nodes, a.info.Nodes) })
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

func correct() []subject {
	return []subject{
		onRedis("", fencing, reentrant, watchdog).called("a correct lock on Redis"),
		polling("", fencing, reentrant, watchdog).called("a correct lock that is polled"),
		inProcess("", 1, fifo, fencing, reentrant).called("a correct lock in the process"),
		inProcess("", 3, fifo).called("a correct semaphore"),
		inCohorts("").called("a correct lock that goes round in an instance"),
		inProcess("", 1, bounded).called("a correct lock in the process, that claims less"),
		ofNodes("").called("a correct quorum"),
		polling("tags").called("a correct lock for clusters"),
	}
}
