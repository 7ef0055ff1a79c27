package engine

import (
	"math"
	"net"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
)

// hungUp is a connection at whose end the store hands the lock on at once.
type hungUp struct {
	net.Conn
	handOn func()
}

func (c *hungUp) Close() error {
	c.handOn()
	return nil
}

// Who gets the lock of a holder that has crashed does not hold it beside that holder, however
// quick the store is.
func TestTheNextAfterACrashOverlapsNobody(t *testing.T) {
	clock := measure.NewClock()
	window := measure.NewWindow(clock, 0)
	window.Plan(0, math.MaxInt64)
	key := measure.NewKey(window, 1, time.Hour, 2)
	r := &run{clock: clock, window: window, audit: []*measure.Key{key}}
	v := &faultTarget{run: r, wire: newWire(nil), waiter: measure.NewWaiter(0)}
	key.Arrive(v.waiter, clock.Now(), clock.Now())
	key.Enter(v.waiter, clock.Now(), nil)
	next := measure.NewWaiter(1)
	key.Arrive(next, clock.Now(), clock.Now())
	v.wire.conns[&hungUp{handOn: func() { key.Enter(next, clock.Now(), nil) }}] = struct{}{}
	v.crash()
	if safety := measure.Audit(r.audit); safety.Overlaps != 0 || safety.MaxHolders != 1 {
		t.Errorf("%+v", safety)
	}
}
