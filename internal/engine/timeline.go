package engine

import (
	"time"

	"github.com/lockbench/lockbench/results"
)

// timeline is the window second by second; of a long one by the two seconds, the
// four, and so on, so that it never takes more than mostSlices.
type timeline struct {
	slices    []results.Slice
	every     int // marks a slice
	snapshots int // since the last slice
	last      instant
}

// instant is what had been counted by then.
type instant struct {
	at     time.Duration // since the window opened
	grants int64
	server *results.Reading
}

const mostSlices = 1024

// mark adds what happened since the last look; the first one only begins.
func (r *run) mark(reading *results.Reading) {
	t := &r.timeline
	now := instant{at: time.Duration(r.clock.Now() - r.window.Open), grants: r.grants(), server: reading}
	if t.every == 0 {
		t.every, t.last = 1, now
		r.recorder.Recent(r.ages()) // of the warm-up there is nothing
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

// short is what is left of a window at its end and makes no slice of its own.
const short = 100 * time.Millisecond

// markEnd adds what is left at the end of the window.
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
		if clients := to.server.Clients; clients > 0 { // else it is not told
			s.Connected = &clients
		}
	}
	return s
}

// ages are for how long those who wait have been waiting, in nanoseconds.
func (r *run) ages() []int64 {
	var ages []int64
	now := r.clock.Now()
	for _, k := range r.audit {
		ages = k.Ages(ages, now)
	}
	return ages
}
