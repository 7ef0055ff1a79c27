package measure

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// watched is a lease that says when it is lost.
type watched struct {
	plain
	lost chan struct{}
}

func (w watched) Lost() <-chan struct{} { return w.lost }

// Where a lease is its holder's session, releases tell whether holders overlapped: one whose
// session had ended had outstayed its lease, however soon after its grant; two that were held
// to the end are a breach, however long after.
func TestOverlapsOfSessions(t *testing.T) {
	const ttl = 1000
	over := make(chan struct{})
	close(over)
	elsewhere := errors.New("connection reset")
	type step = func(k *Key, w []*Waiter)
	release := func(who int, at int64, lease strategies.Lease, err error) step {
		return func(k *Key, w []*Waiter) {
			k.Exit(w[who], at)
			k.Settle(w[who], lease, err)
		}
	}
	in := func(who int, at int64) step {
		return func(k *Key, w []*Waiter) { enter(k, w[who], at, plain{}) }
	}
	token := func(who int, at, token int64) step {
		return func(k *Key, w []*Waiter) { enter(k, w[who], at, fenced{token: token}) }
	}
	for name, test := range map[string]struct {
		steps []step
		want  results.Safety
	}{
		"one after the other": {[]step{in(1, 10), release(1, 20, plain{}, nil), in(2, 20), release(2, 30, plain{}, nil)}, results.Safety{MaxHolders: 1}},
		"the first one's session had ended, before a TTL was over": {
			[]step{in(1, 10), in(2, 20), release(2, 30, plain{}, nil), release(1, 40, plain{}, strategies.ErrNotHeld)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"both held theirs to the end": {
			[]step{in(1, 10), in(2, 20), release(2, 30, plain{}, nil), release(1, 40, plain{}, nil)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 10},
		},
		"both held theirs, long after a TTL": {
			[]step{in(1, 10), in(2, 20*ttl), release(1, 20*ttl+5, plain{}, nil), release(2, 20*ttl+9, plain{}, nil)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 5},
		},
		"the newcomer's had ended before it came": {
			[]step{in(1, 10), in(2, 20), release(2, 30, plain{}, strategies.ErrNotHeld), release(1, 40, plain{}, nil)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"a third one, with a first whose session had ended and a second that held": {
			[]step{in(1, 10), in(2, 20), in(3, 30), release(3, 40, plain{}, nil), release(1, 50, plain{}, strategies.ErrNotHeld), release(2, 60, plain{}, nil)},
			results.Safety{MaxHolders: 3, ExpiredOverlaps: 1, ExpiredOverlapNS: 30, Overlaps: 1, OverlapNS: 10},
		},
		"a release that failed, of a lease that knew": {
			[]step{in(1, 10), in(2, 20), release(2, 30, plain{}, nil), release(1, 40, watched{lost: over}, elsewhere)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"a release that failed, of a lease that did not": {
			[]step{in(1, 10), in(2, 20), release(2, 30, plain{}, nil), release(1, 40, watched{lost: make(chan struct{})}, elsewhere)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 10},
		},
		"nobody has released": {[]step{in(1, 0), in(2, 0)}, results.Safety{MaxHolders: 2, Overlaps: 1}},
		"a holder that died": {
			[]step{in(1, 10), in(2, 20), func(k *Key, w []*Waiter) { k.Vanish(w[1], 25) }, release(2, 30, plain{}, nil)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 5},
		},
		"somebody came and went meanwhile, and the session had ended": {
			[]step{in(2, 20), release(2, 30, plain{}, nil), in(1, 10), release(1, 40, plain{}, strategies.ErrNotHeld)},
			results.Safety{MaxHolders: 1, ExpiredOverlaps: 1, ExpiredOverlapNS: 20},
		},
		"somebody came and went meanwhile, and it had not": {
			[]step{in(2, 20), release(2, 30, plain{}, nil), in(1, 10), release(1, 40, plain{}, nil)},
			results.Safety{MaxHolders: 1, Overlaps: 1, OverlapNS: 20},
		},
		"an older token of a session that had ended": {
			[]step{token(2, 20, 7), release(2, 30, plain{}, nil), token(1, 40, 6), release(1, 50, plain{}, strategies.ErrNotHeld)},
			results.Safety{MaxHolders: 1, FencedLeases: 2},
		},
		"an older token of a session that had not": {
			[]step{token(2, 20, 7), release(2, 30, plain{}, nil), token(1, 40, 6), release(1, 50, plain{}, nil)},
			results.Safety{MaxHolders: 1, FencedLeases: 2, FencingRegression: 1},
		},
		"the same token twice": {
			[]step{token(2, 20, 7), release(2, 30, plain{}, nil), token(1, 40, 7), release(1, 50, plain{}, strategies.ErrNotHeld)},
			results.Safety{MaxHolders: 1, FencedLeases: 2, FencingRegression: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := NewKey(NewWindow(NewClock(), 0), 1, ttl, 0)
			k.BySession()
			waiters := people()
			for _, do := range test.steps {
				do(k, waiters)
				Seen([]*Key{k}) // which changes nothing, as at a fault in the middle of a run
			}
			got := Audit([]*Key{k})
			if name == "nobody has released" {
				got.OverlapNS = 0 // until now
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// fenced is a lease with a token, which knows nothing of time.
type fenced struct {
	plain
	token int64
}

func (f fenced) FencingToken() int64 { return f.token }
