package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
)

const (
	watched    = time.Second
	restless   = 90.0 // percent of all cores idle, below which other processes are busy
	stolen     = 1.0  // percent of all cores
	slowWakeUp = 2 * time.Millisecond
)

// machine observes this machine for a second in which lockbench does nothing.
func machine(ctx context.Context) Symptom {
	before := measure.ReadHealth()
	select {
	case <-time.After(watched):
	case <-ctx.Done():
	}
	after := measure.ReadHealth()
	e := measure.Environment()
	s := Symptom{Name: "machine", State: Well}
	s.Says = append(s.Says, fmt.Sprintf("%d CPUs, sleeps end %v late", e.CPUs, time.Duration(e.TimerOvershoot).Round(time.Microsecond)))
	if time.Duration(e.TimerOvershoot) > slowWakeUp {
		s.State = Note
	}
	if idle := after.Since(before).MachineIdle; idle != nil {
		s.Says = append(s.Says, fmt.Sprintf("%.0f %% of all cores idle while lockbench did nothing", *idle))
		if *idle < restless {
			s.State = Note
			s.Next = append(s.Next, "something else is at work here: measure on a quieter machine, or with --runs 5 or more")
		}
	} else {
		s.Says = append(s.Says, "how busy it is the system does not say")
	}
	if steal := after.StolenSince(before); steal != nil && *steal > stolen {
		s.State = Note
		s.Says = append(s.Says, fmt.Sprintf("%.1f %% of all cores stolen by other machines on the same hardware", *steal))
	}
	return s
}
