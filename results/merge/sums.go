package merge

import (
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/results"
)

// jain is Jain's index of the clients' turns, see results.Fairness: exact up to
// 2047 turns a client, beyond that within 0.1 %.
func jain(turns *hdrhistogram.Histogram) *float64 {
	var n, sum, squares float64
	for _, bar := range turns.Distribution() {
		clients, x := float64(bar.Count), float64(bar.From)
		n += clients
		sum += clients * x
		squares += clients * x * x
	}
	return results.Jain(n, sum, squares)
}

// effort is weighed by the acquisitions; nil where a generator does not know.
func effort(parts []part) results.Effort {
	weighed := func(of func(results.Effort) *float64) *float64 {
		var acquisitions, total float64
		for _, p := range parts {
			per := of(p.Effort)
			if per == nil && p.Speed.Acquisitions == 0 {
				continue
			}
			if per == nil {
				return nil
			}
			n := float64(p.Speed.Acquisitions)
			acquisitions += n
			total += n * *per
		}
		if acquisitions == 0 {
			return nil
		}
		return new(total / acquisitions)
	}
	return results.Effort{
		Attempts: weighed(func(e results.Effort) *float64 { return e.Attempts }),
		WakeUps:  weighed(func(e results.Effort) *float64 { return e.WakeUps }),
		Futile:   weighed(func(e results.Effort) *float64 { return e.Futile }),
	}
}

// safety adds up what each generator saw of its own clients. What the last of them
// found on the servers when all had left is what was left behind.
func safety(parts []part) results.Safety {
	var s results.Safety
	for _, p := range parts {
		s.Add(p.Safety)
		for _, claim := range p.Safety.Broken {
			s.Broken = append(s.Broken, claim+" (seen by "+p.generator+")")
		}
	}
	return s
}

// generator adds up what the processes used, and takes the worst of their health.
func generator(parts []part) results.Generator {
	g := parts[0].Generator
	for _, p := range parts[1:] {
		from := p.Generator
		g.CPUSeconds += from.CPUSeconds
		g.CPUPercent += from.CPUPercent
		if from.MachineIdle != nil && (g.MachineIdle == nil || *from.MachineIdle < *g.MachineIdle) {
			g.MachineIdle = from.MachineIdle
		}
		g.Foreign, g.Steal = worse(g.Foreign, from.Foreign), worse(g.Steal, from.Steal)
		g.SchedulingP99 = max(g.SchedulingP99, from.SchedulingP99)
		g.GCCount += from.GCCount
		g.GCPauseNS += from.GCPauseNS
		g.GCCPUSeconds += from.GCCPUSeconds
		if from.TimerOvershoot != nil && (g.TimerOvershoot == nil || *from.TimerOvershoot > *g.TimerOvershoot) {
			g.TimerOvershoot = from.TimerOvershoot
		}
		g.Starts += from.Starts
		g.LateStarts += from.LateStarts
		g.BehindStarts += from.BehindStarts
		g.PoolWaits += from.PoolWaits
		g.PoolWaitNS += from.PoolWaitNS
		g.PoolTimeouts += from.PoolTimeouts
		g.PeakRSS += from.PeakRSS
	}
	return g
}

// worse is the larger of two that may not be known.
func worse(a, b *float64) *float64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

// books are those of all clients.
func books(parts []part) results.Books {
	b := results.Books{Balanced: true}
	for _, p := range parts {
		b.Wait += p.Books.Wait
		b.Hold += p.Books.Hold
		b.Release += p.Books.Release
		b.Think += p.Books.Think
		b.Window += p.Books.Window
		b.WorstPercent = max(b.WorstPercent, p.Books.WorstPercent)
		b.Balanced = b.Balanced && p.Books.Balanced
	}
	return b
}

// timeline adds up slices by their number, since the windows opened together.
func timeline(parts []part) []results.Slice {
	course := slices.Clone(parts[0].Timeline)
	for _, p := range parts[1:] {
		course = course[:min(len(course), len(p.Timeline))]
		for i := range course {
			course[i] = beside(course[i], p.Timeline[i])
		}
	}
	for i := range course { // each generator read the same counters
		s := &course[i]
		if s.Commands != nil {
			s.Commands = rounded(new(float64(*s.Commands) / float64(len(parts))))
		}
		if s.RedisCPU != nil {
			s.RedisCPU = new(*s.RedisCPU / float64(len(parts)))
		}
	}
	return course
}

// beside is what happened in two generators at the same time. Its percentiles are
// the larger ones.
func beside(a, b results.Slice) results.Slice {
	both := func(a, b *int64) []int64 { return each([]*int64{a, b}, func(n *int64) *int64 { return n }) }
	larger := func(a, b *int64) *int64 {
		if a == nil || b != nil && *b > *a {
			return b
		}
		return a
	}
	a.Acquisitions += b.Acquisitions
	a.Waiting += b.Waiting
	a.TakeSlowest(b)
	a.Commands, a.RoundTrips = sum(both(a.Commands, b.Commands)), sum(both(a.RoundTrips, b.RoundTrips))
	a.RedisCPU = sum(each([]*float64{a.RedisCPU, b.RedisCPU}, func(n *float64) *float64 { return n }))
	a.Connected = larger(a.Connected, b.Connected)
	return a
}
