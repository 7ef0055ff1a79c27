package engine

import (
	"math"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
)

// injection is one occurrence of a fault.
type injection struct {
	results.Injection
	at       int64
	key      int // a key's number, or every
	over     int64
	ended    bool
	lasting  bool  // the fault continues, although clients can get locks
	lastSeen int64 // the last acquisition, or the injection itself
	until    int64 // the next injection of any fault
}

const every = -1 // a key: all keys

// begin notes that a fault has occurred at an instant.
func (d *disturbance) begin(f *fault, key int, at int64, halts bool) *injection {
	s := &injection{at: at, key: key, lastSeen: at, until: math.MaxInt64}
	s.AtNS, s.Halts = at-d.run.window.Open, halts
	if key != every {
		s.Key = Prefix + d.run.keys[key]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last != nil {
		d.last.until = at
	}
	d.attribute(measure.Seen(d.run.audit))
	f.open = slices.DeleteFunc(f.open, func(s *injection) bool { return s.RecoveryNS != nil })
	f.injections, f.open, d.last = append(f.injections, s), append(f.open, s), s
	if halts {
		d.halts++
	} else {
		s.over, s.ended = at, true
	}
	return s
}

// lasts notes that the fault goes on until ends is called.
func (d *disturbance) lasts(s *injection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.lasting = true
}

// ends notes the end of a fault that lasted.
func (d *disturbance) ends(s *injection) {
	now := d.run.clock.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	s.LastedNS, s.lasting = now-s.at, false
}

// aftermath is how long after a fault its effects may still cause errors.
const aftermath = 5 * time.Second

// explains says whether a fault explains an error at an instant: from the fault's start
// until aftermath after its end.
func (d *disturbance) explains(at int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.faults {
		for _, s := range f.injections {
			if at >= s.at && (s.lasting || at <= s.at+s.LastedNS+int64(aftermath)) {
				return true
			}
		}
	}
	return false
}

// resume notes the end of an outage.
func (d *disturbance) resume(s *injection, at int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.halts--
	d.haltEnd, s.over, s.ended = at, at, true
}

// attribute counts the overlaps since the last injection as caused by that injection. now is
// what was seen until now.
func (d *disturbance) attribute(now results.Safety) {
	if s := d.last; s != nil {
		s.Overlaps += now.Overlaps - d.base.Overlaps
		s.OverlapNS += now.OverlapNS - d.base.OverlapNS
		s.Late += now.ExpiredOverlaps - d.base.ExpiredOverlaps
		s.LateNS += now.ExpiredOverlapNS - d.base.ExpiredOverlapNS
	}
	d.base = now
}

// granted notes an acquisition.
func (d *disturbance) granted(key int, at int64, grant measure.Grant) {
	if len(d.faults) == 0 || at >= d.run.window.End() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgotten(at, grant.Idle)
	for _, f := range d.faults {
		for _, s := range f.open {
			s.seen(key, at)
		}
	}
}

// forgotten counts a lost wake-up if a key with waiters was idle for too long.
func (d *disturbance) forgotten(at, idle int64) {
	if d.last != nil && min(idle, at-d.haltEnd) > d.idle {
		d.last.LostWakeUps++
	}
}

// seen notes an acquisition after the injection.
func (s *injection) seen(key int, at int64) {
	if at < s.at || s.key != every && s.key != key {
		return
	}
	if at < s.until {
		s.stalled(at, false)
	}
	if s.RecoveryNS == nil && s.ended && at >= s.over {
		s.RecoveryNS = new(at - s.at)
	}
}

// stalled notes that nobody acquired the key between lastSeen and until.
func (s *injection) stalled(until int64, cut bool) {
	if gap := until - s.lastSeen; gap > 0 && (s.Stall == nil || gap > s.Stall.NS) {
		s.Stall = &results.Bound{NS: gap, AtLeast: cut}
	}
	s.lastSeen = max(s.lastSeen, until)
}

// soFar lists the faults that have been injected; their effects are only known at the end.
func (d *disturbance) soFar() (all []results.Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.faults {
		one := results.Fault{Fault: f.spec, Missed: slices.Clone(f.missed)}
		for _, s := range f.injections {
			one.Injections = append(one.Injections, results.Injection{AtNS: s.AtNS, Key: s.Key, Halts: s.Halts})
		}
		all = append(all, one)
	}
	return all
}

// report returns what was recorded of the faults. No fault is under way any more.
func (d *disturbance) report() []results.Fault {
	end := d.run.window.End()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attribute(measure.Audit(d.run.audit))
	var all []results.Fault
	for _, f := range d.faults {
		one := results.Fault{Fault: f.spec, Injections: []results.Injection{}, Missed: f.missed}
		for _, s := range f.injections {
			s.stalled(min(s.until, end), true)
			one.Injections = append(one.Injections, s.Injection)
		}
		all = append(all, one)
	}
	return all
}

// forgets says whether a fault made Redis lose confirmed writes.
func (d *disturbance) forgets() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.loses
}

// absent names the faults that were never injected although there was a target.
func (d *disturbance) absent() results.Remarks {
	var names results.Remarks
	for _, f := range d.faults {
		if len(f.injections) > 0 || f.spared {
			continue
		}
		why := "it was never due"
		if len(f.missed) > 0 {
			why = f.missed[0]
		}
		names = append(names, results.FaultAbsent.Remark(f.spec.Name, why))
	}
	return names
}
