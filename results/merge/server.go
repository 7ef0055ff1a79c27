package merge

import (
	"math"

	"github.com/lockbench/lockbench/results"
)

// server is what all generators saw of the same servers. What Redis counted was
// counted for all of them together, and read by each: the mean of the readings.
// What was counted at their sockets adds up. The acquisitions to divide by are
// everybody's. A generator that was never served has no readings to divide, nor has
// it any share in the acquisitions: the others' readings do, but for its sockets.
//
// The whole run is left out: each generator's is another interval.
func server(parts []part) results.Server {
	var s results.Server
	var windows []*results.ServerDelta
	unknown := false
	for _, p := range parts {
		if p.Server.Window != nil {
			windows = append(windows, p.Server.Window)
		} else {
			unknown = unknown || p.Speed.Acquisitions > 0
		}
		s.Peak = higher(s.Peak, p.Server.Peak)
	}
	if len(windows) == 0 || unknown {
		return s
	}
	s.Window = delta(windows)
	if len(windows) < len(parts) {
		s.Window.RoundTrips, s.Window.ClientBytesOut, s.Window.ClientBytesIn = nil, nil, nil
	}
	return s
}

func delta(windows []*results.ServerDelta) *results.ServerDelta {
	type field = func(*results.ServerDelta) *int64
	count := func(of field) *int64 { return rounded(mean(each(windows, of))) }
	total := func(of field) *int64 { return sum(each(windows, of)) }
	d := &results.ServerDelta{
		Calls:          count(func(d *results.ServerDelta) *int64 { return d.Calls }),
		BytesIn:        count(func(d *results.ServerDelta) *int64 { return d.BytesIn }),
		BytesOut:       count(func(d *results.ServerDelta) *int64 { return d.BytesOut }),
		CPU:            mean(each(windows, func(d *results.ServerDelta) *float64 { return d.CPU })),
		MainCPU:        mean(each(windows, func(d *results.ServerDelta) *float64 { return d.MainCPU })),
		RoundTrips:     total(func(d *results.ServerDelta) *int64 { return d.RoundTrips }),
		ClientBytesOut: total(func(d *results.ServerDelta) *int64 { return d.ClientBytesOut }),
		ClientBytesIn:  total(func(d *results.ServerDelta) *int64 { return d.ClientBytesIn }),
		BusPublished:   count(func(d *results.ServerDelta) *int64 { return d.BusPublished }),
		Commands:       map[string]int64{},
	}
	for _, w := range windows {
		d.Seconds += w.Seconds / float64(len(windows))
		d.Acquisitions += w.Acquisitions
		d.Evictions = max(d.Evictions, w.Evictions)
		d.IOThreads = max(d.IOThreads, w.IOThreads)
		for command := range w.Commands {
			d.Commands[command] = *count(func(d *results.ServerDelta) *int64 { return new(d.Commands[command]) })
		}
		// The one that looked when the others' connections were there too.
		if w.IdleCPU != nil && (d.IdleCPU == nil || *w.IdleCPU > *d.IdleCPU) {
			d.IdleCPU = w.IdleCPU
		}
	}
	if d.Calls == nil {
		d.Commands = nil
	}
	return d
}

// each is a figure of all parts; nil where one does not know it.
func each[T any, N int | int64 | float64](parts []T, of func(T) *N) []N {
	var all []N
	for _, p := range parts {
		n := of(p)
		if n == nil {
			return nil
		}
		all = append(all, *n)
	}
	return all
}

func sum[N int | int64 | float64](all []N) *N {
	if all == nil {
		return nil
	}
	var total N
	for _, n := range all {
		total += n
	}
	return &total
}

func mean[N int64 | float64](all []N) *float64 {
	if all == nil {
		return nil
	}
	return new(float64(*sum(all)) / float64(len(all)))
}

func rounded(x *float64) *int64 {
	if x == nil {
		return nil
	}
	return new(int64(math.Round(*x)))
}

// higher are the larger ones of two peaks of the same servers.
func higher(a, b *results.ServerPeak) *results.ServerPeak {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	peak := *a
	peak.Add(*b)
	return &peak
}
