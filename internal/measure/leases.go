package measure

import (
	"sync"

	"github.com/lockbench/lockbench/results"
)

// Leases records the leases of all clients of a run, up to results.MostLeases.
type Leases struct {
	mu     sync.Mutex
	packed results.Leases
	last   results.Lease
	count  int
}

// Packed returns the leases in compact form; nil if there were too many to record.
func (l *Leases) Packed() results.Leases {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > results.MostLeases {
		return nil
	}
	return append(results.Leases{}, l.packed...)
}

// Follow makes the key record its leases under the given key number. Leases that last as long as a session cannot be
// recorded, because only their release shows whether a client still held them.
func (k *Key) Follow(to *Leases, number int) { k.leases, k.number = to, number }

// follow records the lease of a holder that is about to release it.
func (k *Key) follow(h holder) {
	if k.leases == nil {
		return
	}
	us := func(at int64) int64 { return (at - k.window.Open) / 1000 }
	next := results.Lease{Key: k.number, From: us(h.granted), Until: us(h.end(k.window.Clock))}
	if next.Fenced = h.fenced != nil; next.Fenced {
		next.Token = h.fenced.FencingToken()
	}
	l := k.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count++; l.count <= results.MostLeases {
		l.packed, l.last = l.packed.Append(l.last, next), next
	}
}
