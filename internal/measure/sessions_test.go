package measure

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

type watched struct {
	plain
	lost chan struct{}
}

func (w watched) Lost() <-chan struct{} { return w.lost }

// A lease lasts as long as its holder's session, so only the release shows whether the lease had ended by then. Two
// holders at a time break the claim if both still held their leases. If one lease had ended, its holder used the lock
// too long.
func TestOverlapsOfSessions(t *testing.T) {
	over := make(chan struct{})
	close(over)
	elsewhere := errors.New("connection reset")
	settles := func(who int, at int64, lease strategies.Lease, err error) step {
		return func(k *Key, w []*Waiter) {
			k.Exit(w[who], at)
			k.Settle(w[who], lease, err)
		}
	}
	held := func(who int, at int64) step { return settles(who, at, plain{}, nil) }
	late := func(who int, at int64) step { return settles(who, at, plain{}, strategies.ErrNotHeld) }
	for name, test := range map[string]struct {
		steps []step
		want  results.Safety
	}{
		"one after the other": {[]step{
			enters(1, 10), held(1, 20), enters(2, 20), held(2, 30),
		}, results.Safety{MaxHolders: 1}},
		"the first one's session had ended, before a TTL was over": {
			[]step{enters(1, 10), enters(2, 20), held(2, 30), late(1, 40)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"both held theirs to the end": {
			[]step{enters(1, 10), enters(2, 20), held(2, 30), held(1, 40)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 10},
		},
		"both held theirs, long after a TTL": {
			[]step{enters(1, 10), enters(2, 20*ttl), held(1, 20*ttl+5), held(2, 20*ttl+9)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 5},
		},
		"the newcomer's had ended before it came": {
			[]step{enters(1, 10), enters(2, 20), late(2, 30), held(1, 40)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"a third one, with a first whose session had ended and a second that held": {
			[]step{
				enters(1, 10), enters(2, 20), enters(3, 30), held(3, 40),
				late(1, 50), held(2, 60),
			},
			results.Safety{MaxHolders: 3, ExpiredOverlaps: 2, ExpiredOverlapNS: 40, Overlaps: 1, OverlapNS: 10},
		},
		"a release that failed, of a lease that knew": {
			[]step{enters(1, 10), enters(2, 20), held(2, 30), settles(1, 40, watched{lost: over}, elsewhere)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"a release that failed, of a lease that did not": {
			[]step{
				enters(1, 10), enters(2, 20), held(2, 30),
				settles(1, 40, watched{lost: make(chan struct{})}, elsewhere),
			},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 10},
		},
		"no client has released": {[]step{enters(1, 0), enters(2, 0)}, results.Safety{MaxHolders: 2, Overlaps: 1}},
		"a holder that died": {
			[]step{enters(1, 10), enters(2, 20), func(k *Key, w []*Waiter) { k.Vanish(w[1], 25) }, held(2, 30)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 5},
		},
		"another client held it in between, and the session had ended": {
			[]step{enters(2, 20), held(2, 30), enters(1, 10), late(1, 40)},
			results.Safety{MaxHolders: 1, ExpiredOverlaps: 1, ExpiredOverlapNS: 20},
		},
		"another client held it in between, and the session had not ended": {
			[]step{enters(2, 20), held(2, 30), enters(1, 10), held(1, 40)},
			results.Safety{MaxHolders: 1, Overlaps: 1, OverlapNS: 20},
		},
		"an older token of a session that had ended": {
			[]step{enters(2, 20, fenced{token: 7}), held(2, 30), enters(1, 40, fenced{token: 6}), late(1, 50)},
			results.Safety{MaxHolders: 1, FencedLeases: 2},
		},
		"an older token of a session that had not": {
			[]step{enters(2, 20, fenced{token: 7}), held(2, 30), enters(1, 40, fenced{token: 6}), held(1, 50)},
			results.Safety{MaxHolders: 1, FencedLeases: 2, FencingRegression: 1},
		},
		"the same token twice": {
			[]step{enters(2, 20, fenced{token: 7}), held(2, 30), enters(1, 40, fenced{token: 7}), late(1, 50)},
			results.Safety{MaxHolders: 1, FencedLeases: 2, FencingRegression: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := NewKey(NewWindow(NewClock(), 0), 1, ttl, 0)
			k.BySession()
			waiters := newWaiters()
			for _, do := range test.steps {
				do(k, waiters)
				Seen([]*Key{k}) // as at a fault during the run; must change nothing
			}
			got := Audit([]*Key{k})
			if name == "no client has released" {
				got.OverlapNS = 0 // depends on the current time
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// fenced is a lease with a fencing token. It does not report its validity.
type fenced struct {
	plain
	token int64
}

func (f fenced) FencingToken() int64 { return f.token }
