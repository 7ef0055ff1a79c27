package engine

import (
	"time"

	"github.com/lockbench/lockbench/results"
)

// timeline divides the window into slices of one second. A long window has slices of two
// seconds, four seconds and so on, so that there are never more than mostSlices.
type timeline struct {
	slices    []results.Slice
	every     int // calls of mark per slice
	snapshots int // calls of mark since the last slice
	last      instant
}

// instant holds the counters at one time.
type instant struct {
	at     time.Duration // since the window opened
	grants int64
	server *results.Reading
}

const mostSlices = 1024

// mark adds what happened since the last call; the first call only begins.
func (r *run) mark(reading *results.Reading) {
	t := &r.timeline
	now := instant{at: time.Duration(r.clock.Now() - r.window.Open), grants: r.grants(), server: reading}
	if t.every == 0 {
		t.every, t.last = 1, now
		r.recorder.Recent(r.ages()) // discard the waits of the warm-up
		return
	}
	if t.snapshots++; t.snapshots < t.every {
		return
	}
	t.slices = append(t.slices, r.slice(t.last, now))
	t.snapshots, t.last = 0, now
	if len(t.slices) == mostSlices {
		t.slices = results.Halve(t.slices)
		t.every *= 2
	}
}

// short is the length below which the rest of a window makes no slice.
const short = 100 * time.Millisecond

// markEnd adds the rest at the end of the window.
func (r *run) markEnd(reading *results.Reading) {
	t := &r.timeline
	if t.every == 0 || time.Duration(r.window.Length())-t.last.at < short {
		return
	}
	t.snapshots = t.every
	r.mark(reading)
}

func (r *run) slice(from, to instant) results.Slice {
	s := results.Slice{
		At:           max(0, from.at.Seconds()),
		Seconds:      (to.at - from.at).Seconds(),
		Acquisitions: to.grants - from.grants,
	}
	ages := r.ages()
	s.Waiting = len(ages)
	waits := r.recorder.Recent(ages)
	s.SetWaits(waits.P50, waits.P99, waits.Max)
	if from.server != nil && to.server != nil {
		d := to.server.Since(*from.server, s.Acquisitions)
		s.Commands, s.RedisCPU, s.RoundTrips, s.Connected = d.Calls, d.CPU, d.RoundTrips, nil
		if clients := to.server.Clients; clients > 0 { // otherwise it is unknown
			s.Connected = &clients
		}
	}
	return s
}

// ages returns how long the current waiters have been waiting, in nanoseconds.
func (r *run) ages() []int64 {
	var ages []int64
	now := r.clock.Now()
	for _, k := range r.audit {
		ages = k.Ages(ages, now)
	}
	return ages
}
