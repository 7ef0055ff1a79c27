package engine

// This file records the effects of faults: each injection, the acquisitions, stalls and overlaps that followed it, and
// the errors that faults explain. faultLog calls no function of the other fault files.

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// faultLog records the faults of a run. Its methods may be called concurrently.
type faultLog struct {
	run     *run           // for its clock, window, keys, and audit
	longest int64          // ns that a key with waiters may stay free before it counts as a lost wake-up
	records []*faultRecord // the list never changes, so clients check without mu whether it is empty

	mu      sync.Mutex
	last    *injection     // the latest injection of any fault
	base    results.Safety // the audit at the latest injection
	halts   int            // outages under way
	haltEnd int64          // end of the latest outage
	loses   bool           // a fault made the servers lose confirmed writes; read it when no fault is under way
}

// faultRecord records the injections of one fault of the workload.
type faultRecord struct {
	spec       workloads.Fault
	injections []*injection
	open       []*injection // injections still under observation
	reasons    []string     // why an injection that was due did not happen
	spared     bool         // no injection was possible because there was no target
}

// strike is a fault that is ready to be injected.
type strike struct {
	store.Action
	key int // number of the affected key, or every
	// lasts is the time from Hit to End.
	lasts time.Duration
}

const every = -1 // a key: all keys

// atOnce reports whether the strike has no duration, like the death of a process. A fault that affects every key always
// has a duration, because its Hit may take some time.
func (s strike) atOnce() bool { return s.key != every && s.End == nil }

// injection is one injection of a fault with its effects so far.
type injection struct {
	results.Injection
	at       int64
	key      int   // number of the affected key, or every
	over     int64 // when clients could get locks again; math.MaxInt64 during an outage
	lasting  bool  // the fault continues, although clients can get locks
	lastSeen int64 // instant of the last acquisition, or of the injection if there was none
	until    int64 // instant of the next injection of any fault
}

const (
	// longestIdle is how long a key with waiters may stay free before a lost wake-up is counted. It exceeds the default
	// interval of clients that poll.
	longestIdle = time.Second
	// aftermath is how long after a fault its effects may still cause errors.
	aftermath = 5 * time.Second
)

func newFaultLog(r *run) *faultLog {
	l := &faultLog{run: r, longest: int64(min(longestIdle, time.Duration(r.Workload.TTL)/2))}
	for _, spec := range r.Workload.Faults {
		l.records = append(l.records, &faultRecord{spec: spec})
	}
	return l
}

// begin records the start of an injection. Call it before the fault takes effect, because some stores grant the lock to
// the next client within microseconds.
func (l *faultLog) begin(f *faultRecord, s strike) *injection {
	at := l.run.clock.Now()
	i := &injection{at: at, key: s.key, over: at, lastSeen: at, until: math.MaxInt64, lasting: !s.atOnce()}
	i.AtNS, i.Halts = at-l.run.window.Open, s.Outage != store.NoOutage
	if s.key != every {
		i.Key = Prefix + l.run.keys[s.key]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		l.last.until = at
	}
	l.attribute(measure.Seen(l.run.audit))
	f.open = slices.DeleteFunc(f.open, func(i *injection) bool { return i.RecoveryNS != nil })
	f.injections, f.open, l.last = append(f.injections, i), append(f.open, i), i
	if i.Halts {
		l.halts++
		i.over = math.MaxInt64
	}
	l.loses = l.loses || s.Loses
	return i
}

// resume records the end of an outage.
func (l *faultLog) resume(i *injection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resumed(i, l.run.clock.Now())
}

func (l *faultLog) resumed(i *injection, at int64) {
	l.halts--
	l.haltEnd, i.over = at, at
}

// end records the end of a fault and of its outage, if the outage still lasts.
func (l *faultLog) end(i *injection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.run.clock.Now()
	if i.over == math.MaxInt64 {
		l.resumed(i, now)
	}
	if i.lasting {
		i.LastedNS, i.lasting = now-i.at, false
	}
}

// missed records why a fault was not injected when it was due.
func (l *faultLog) missed(f *faultRecord, why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.reasons = append(f.reasons, untrusted.Printable(why.Error()))
	f.spared = errors.Is(why, store.ErrNoTarget)
}

// attribute adds the overlaps since the last injection to that injection. now contains the results of the audit so far.
func (l *faultLog) attribute(now results.Safety) {
	if i := l.last; i != nil {
		i.Overlaps += now.Overlaps - l.base.Overlaps
		i.OverlapNS += now.OverlapNS - l.base.OverlapNS
		i.Late += now.ExpiredOverlaps - l.base.ExpiredOverlaps
		i.LateNS += now.ExpiredOverlapNS - l.base.ExpiredOverlapNS
	}
	l.base = now
}

// granted records an acquisition by a client of the workload or by a target.
func (l *faultLog) granted(key int, at int64, grant measure.Grant) {
	if at >= l.run.window.End() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgotten(at, grant.Idle)
	for _, f := range l.records {
		for _, i := range f.open {
			i.seen(key, at)
		}
	}
}

// closeWindow counts the lost wake-ups of keys that are still free, with waiters, at the end of the window.
func (l *faultLog) closeWindow() {
	end := l.run.window.End()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.run.audit {
		l.forgotten(end, k.Idle(end))
	}
}

// forgotten counts a lost wake-up if a key with waiters has been idle for longer than l.longest. Only the time since
// the end of the last outage counts.
func (l *faultLog) forgotten(at, idle int64) {
	if l.last != nil && min(idle, at-l.haltEnd) > l.longest {
		l.last.LostWakeUps++
	}
}

// seen records an acquisition of a key at the instant at. The first acquisition after the injection and its outage sets
// RecoveryNS.
func (i *injection) seen(key int, at int64) {
	if at < i.at || i.key != every && i.key != key {
		return
	}
	if at < i.until {
		i.stalled(at, false)
	}
	if i.RecoveryNS == nil && at >= i.over {
		i.RecoveryNS = new(at - i.at)
	}
}

// stalled records that no client acquired the key between lastSeen and until. If cut is set, the stall may have lasted
// longer.
func (i *injection) stalled(until int64, cut bool) {
	if gap := until - i.lastSeen; gap > 0 && (i.Stall == nil || gap > i.Stall.NS) {
		i.Stall = &results.Bound{NS: gap, AtLeast: cut}
	}
	i.lastSeen = max(i.lastSeen, until)
}

// halted reports whether an outage is under way in which no client can get a lock.
func (l *faultLog) halted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.halts > 0
}

// explainsSilence reports whether faults explain that the servers do not reply. They do so during an outage. Two or
// more simultaneous faults that affect every key also explain it, because they may leave too few nodes.
func (l *faultLog) explainsSilence() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	lasting := 0
	for _, f := range l.records {
		for _, i := range f.injections {
			if i.lasting && i.key == every {
				lasting++
			}
		}
	}
	return l.halts > 0 || lasting > 1
}

// explains reports whether a fault explains an error at an instant. A fault explains errors from its start until
// aftermath after its end.
func (l *faultLog) explains(at int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.records {
		for _, i := range f.injections {
			if at >= i.at && (i.lasting || at <= i.at+i.LastedNS+int64(aftermath)) {
				return true
			}
		}
	}
	return false
}

// report returns the faults with their injections so far. over means that all faults have ended. Only then does the
// result include their effects.
func (l *faultLog) report(over bool) (all []results.Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if over {
		l.attribute(measure.Audit(l.run.audit))
	}
	for _, f := range l.records {
		one := results.Fault{Fault: f.spec, Injections: []results.Injection{}, Missed: slices.Clone(f.reasons)}
		for _, i := range f.injections {
			known := results.Injection{AtNS: i.AtNS, Key: i.Key, Halts: i.Halts}
			if over {
				i.stalled(min(i.until, l.run.window.End()), true)
				known = i.Injection
			}
			one.Injections = append(one.Injections, known)
		}
		all = append(all, one)
	}
	return all
}

// absent returns a remark for each fault that was never injected although it had a target.
func (l *faultLog) absent() results.Remarks {
	var names results.Remarks
	for _, f := range l.records {
		if len(f.injections) > 0 || f.spared {
			continue
		}
		why := "it was never due"
		if len(f.reasons) > 0 {
			why = f.reasons[0]
		}
		names = append(names, results.FaultAbsent.Remark(f.spec.Name, why))
	}
	return names
}
