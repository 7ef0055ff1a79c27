package measure

import (
	"sync"

	"github.com/lockbench/lockbench/results"
)

// Leases records the leases of all clients of a run.
type Leases struct {
	mu     sync.Mutex
	packed results.Leases
	last   results.Lease
	count  int
}

// Packed returns the leases; nil if they were too many.
func (l *Leases) Packed() results.Leases {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count > results.MostLeases {
		return nil
	}
	return append(results.Leases{}, l.packed...)
}

// Follow records the key's leases under this key number. Leases that are sessions cannot be
// recorded, because whether a client held one is known only later.
func (k *Key) Follow(to *Leases, number int) { k.leases, k.number = to, number }

// follow records a lease that its holder is about to release.
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
