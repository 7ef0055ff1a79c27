//go:build !race

package model

import (
	"fmt"
	"testing"
)

// faultsOf are the faults that are searched one at a time, between any two steps.
var faultsOf = []struct {
	name   string
	faults faults
}{
	{"calm", faults{}},
	{"a command or its answer is lost or late", faults{breaks: 1}},
	{"a process is told by a connection that breaks", faults{deaf: 1}},
	{"death", faults{deaths: 1}},
	{"cancel", faults{cancels: 1}},
	{"refused writes", faults{refusals: 1}},
	{"refused PUBLISH", faults{mutes: 1}},
	{"failover", faults{failover: 1}},
	{"told twice", faults{twice: 1}},
	{"clock step", faults{steps: 1}},
	{"lost queue", faults{losses: 1}},
	{"extend", faults{extends: 1}},
}

// goals are what must be reached after faults.
func goalsAfter(f faults) []goal {
	switch {
	case f.deaths > 0:
		return []goal{everybodyServed}
	case f == faults{again: f.again}:
		return []goal{promptly}
	default:
		return []goal{nothingLeft}
	}
}

func TestModelIsSafeAndLive(t *testing.T) {
	few, many := 2_000, 8_000
	if deep {
		few, many = 300_000, 1_000_000
	}
	for _, how := range []struct {
		name     string
		protocol protocol
		again    int8
		limit    int
	}{
		{"one in each process", protocol{clients: apart}, 0, many},
		{"one in each process, more than once", protocol{clients: apart}, 1, few},
		{"one in each process, cluster", protocol{clients: apart, cluster: true}, 0, few},
		{"two in one process", protocol{clients: aPair}, 0, few},
		{"two in one process, passing", protocol{clients: aPair, linger: true}, 0, few},
		{"three", protocol{}, 0, few},
		{"three, passing", protocol{linger: true}, 0, few},
	} {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			for _, f := range faultsOf {
				f.faults.again = how.again
				s := search{protocol: &how.protocol, limit: how.limit, goals: goalsAfter(f.faults)}
				r := s.find(f.faults)
				if r.flaw != sound {
					t.Errorf("%s: %v", f.name, r)
				}
				t.Logf("%s: %d worlds, all: %v", f.name, r.seen, r.whole)
			}
		})
	}
}

// Time passes: leases run out while they are relied on, told, released and extended.
func TestModelIsSafeInTime(t *testing.T) {
	limit, most := 2_000, int8(1)
	if deep {
		limit, most = 200_000, 2
	}
	for _, cluster := range []bool{false, true} {
		t.Run(fmt.Sprintf("cluster=%v", cluster), func(t *testing.T) {
			t.Parallel()
			for _, f := range faultsOf {
				p := protocol{clients: apart, cluster: cluster, fewLooks: true}
				f.faults.ticks, f.faults.looks = 2, most
				s := search{protocol: &p, limit: limit}
				r := s.find(f.faults)
				if r.flaw != sound {
					t.Errorf("%s: %v", f.name, r)
				}
				t.Logf("%s: %d worlds, all: %v", f.name, r.seen, r.whole)
			}
		})
	}
}

// A search that finds nothing must have been able to.
func TestModelFindsPlantedMistakes(t *testing.T) {
	timed := func(f faults, ticks, looks int8) faults { f.ticks, f.looks = ticks, looks; return f }
	for _, test := range []struct {
		planted  mistake
		protocol protocol
		faults   faults
		flaw     flaw
		far      bool // too far for every day
	}{
		{tellBeforeWrite, protocol{clients: apart}, faults{failover: 1, again: 1}, twoOwners, false},
		{offeredAgain, protocol{}, faults{failover: 1}, tokenAgain, false},
		{grantToNobody, protocol{clients: apart}, faults{deaths: 1}, untold, false},
		{grantUnmarked, protocol{}, faults{}, stuckForLook, false},
		{queueUnmarked, protocol{clients: apart}, faults{}, stuckForLook, false},
		{releaseUnseen, protocol{clients: apart}, faults{}, stuckForLook, false},
		{releaseUnmarked, protocol{clients: apart}, faults{}, falselyLost, false},
		{leaveTheQueue, protocol{clients: apart}, faults{cancels: 1}, stuckForLease, false},
		{extendShortens, protocol{clients: apart}, timed(faults{extends: 2, breaks: 1}, 1, 0), twoOwners, true},
		{replicatedTold, protocol{clients: apart}, faults{failover: 1, again: 1}, twoOwners, false},
		{trustTheOld, protocol{clients: apart, cluster: true}, faults{failover: 1, again: 1}, twoOwners, false},
		{ignoreUnknown, protocol{clients: apart, cluster: true}, faults{cancels: 1}, stuckForLease, false},
		{noLook, protocol{clients: apart}, faults{deaf: 1}, stuckForLease, false},
		{staleBelieved, protocol{clients: apart}, timed(faults{}, 1, 0), twoOwners, false},
		{lateSetKept, protocol{clients: apart}, faults{breaks: 1}, stuckForLease, false},
		{lateQueueKept, protocol{clients: apart}, faults{breaks: 1}, stuckForLease, false},
		{heldGivenBack, protocol{clients: apart}, faults{twice: 1, again: 1}, twoOwners, false},
		{doubtGivenBack, protocol{clients: apart, cluster: true}, faults{twice: 1, again: 1}, twoOwners, false},
		{releasedUnknown, protocol{clients: apart}, faults{}, falselyLost, false},
		{lateConfirmed, protocol{clients: apart}, timed(faults{}, 2, 0), tokenFell, false},
		{doubtConfirmed, protocol{clients: apart}, timed(faults{breaks: 1}, 2, 0), tokenFell, true},
		{doubtReleased, protocol{clients: apart}, timed(faults{breaks: 1}, 1, 0), tokenAgain, true},
		{ownerOverlooked, protocol{}, faults{deaf: 1}, stuckForLease, true},
		{unsureDropped, protocol{clients: aPair, linger: true}, faults{breaks: 1}, stuckForLease, false},
		{debtForgotten, protocol{clients: apart}, faults{cancels: 1, refusals: 1}, stuckForLease, false},
	} {
		t.Run(string(test.planted), func(t *testing.T) {
			if test.far && !deep {
				t.Skip("LOCKBENCH_MODEL=1 looks so far")
			}
			t.Parallel()
			p := test.protocol
			p.planted = test.planted
			s := search{protocol: &p, limit: 1_000_000, goals: goalsAfter(test.faults)}
			if test.faults.ticks > 0 {
				p.fewLooks, s.goals = true, nil
			}
			if test.flaw < stuck {
				s.only, s.goals = test.flaw, nil
			}
			r := s.find(test.faults)
			if r.flaw != test.flaw {
				t.Errorf("it is not found: %v", r)
			}
			t.Logf("%v", r)
		})
	}
}
