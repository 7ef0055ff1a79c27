package measure

import (
	"testing"
	"time"
)

func TestProcessStandstill(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name string
		// These are the times since the previous pulse, which is at 1.5 s in a window from 1 s to 3 s.
		later, suspended, cpu time.Duration
		want                  time.Duration
	}{
		{"it ran", beat, 0, 5 * ms, 0},
		{"it was stopped", beat + 500*ms, 0, 10 * ms, 490 * ms},
		{"its machine was suspended, with its clock", beat, 700 * ms, 0, 700 * ms},
		{"it was busy on two CPUs", beat + 300*ms, 0, 600 * ms, 0},
		{"it was stopped beyond the window", 5 * time.Second, 0, 0, 1500*ms - beat},
		{"it was stopped before the window", -600 * ms, 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := NewWindow(NewClock(), 0)
			w.Plan(second, 3*second)
			last := pulse{at: second * 3 / 2, real: time.Hour, cpu: time.Minute}
			if test.later < 0 {
				last.at, test.later = second/10, -test.later
			}
			now := last
			now.at, now.real, now.cpu = last.at+int64(test.later), last.real+test.later+test.suspended,
				last.cpu+test.cpu
			h := &Heartbeat{window: w}
			if got := time.Duration(h.stood(last, now)); got != test.want {
				t.Errorf("stood still for %v, want %v", got, test.want)
			}
		})
	}
}

func TestHeartbeatClocks(t *testing.T) {
	h := NewHeartbeat(planned(0))
	before := h.pulse()
	time.Sleep(5 * time.Millisecond)
	after := h.pulse()
	if slept := after.real - before.real; slept < 4*time.Millisecond {
		t.Errorf("of 5 ms the clock saw %v", slept)
	}
	h.End()
}
