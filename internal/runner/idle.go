package runner

import (
	"context"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/store"
)

// idleTime is what stores beside Redis have used while others were driven.
type idleTime struct{ cpu, over float64 } // seconds

// watchOthers notes what the stores that are not driven use until the function that it
// returns is called: they run on the same machine, and what they do costs the one that is.
func (s *session) watchOthers(ctx context.Context, driven string) (done func()) {
	type start struct {
		place
		at  time.Time
		cpu float64
	}
	cpu := func(p place) *float64 {
		reading, err := p.server.Read(ctx)
		if err != nil {
			return nil
		}
		return reading.CPU
	}
	var started []start
	for _, p := range slices.DeleteFunc(slices.Clone(s.servers), func(p place) bool { return p.name == driven || p.name == store.Redis }) {
		if used := cpu(p); used != nil {
			started = append(started, start{p, time.Now(), *used})
		}
	}
	return func() {
		for _, from := range started {
			used := cpu(from.place)
			if used == nil {
				continue
			}
			if s.idle == nil {
				s.idle = map[string]idleTime{}
			}
			sum := s.idle[from.name]
			sum.cpu += *used - from.cpu
			sum.over += time.Since(from.at).Seconds()
			s.idle[from.name] = sum
			s.other(from.name).IdleCPU = new(sum.cpu / sum.over * 100)
		}
	}
}
