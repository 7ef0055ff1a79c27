package runner

import (
	"context"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/store"
)

// idleTime is the CPU time that a store used while others were measured.
type idleTime struct{ cpu, over float64 } // seconds

// watchOthers measures what the other stores use until done is called: on the same machine they
// slow the measured one down.
func (s *session) watchOthers(ctx context.Context, driven store.Server) (done func()) {
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
	for _, p := range slices.DeleteFunc(slices.Clone(s.servers), func(p place) bool { return p.server == driven || p.name == countersName }) {
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
				s.idle = map[place]idleTime{}
			}
			sum := s.idle[from.place]
			sum.cpu += *used - from.cpu
			sum.over += time.Since(from.at).Seconds()
			s.idle[from.place] = sum
			about := &s.report.Redis
			if other := s.about(from.place); other != nil {
				about = &other.Server
			}
			about.IdleCPU = new(sum.cpu / sum.over * 100)
		}
	}
}
