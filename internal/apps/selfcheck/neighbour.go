package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/cpu"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// neighbour runs the same workload alone and beside processes that burn CPU. The system's accounts show what
// these used; the run must report about as much, and have the label.
func (s *session) neighbour(ctx context.Context, c *Check) error {
	v, err := contender()
	if err != nil {
		return err
	}
	w := workload(10, 5, s.Effort.Neighbour)
	w.Hold = workloads.Fixed(2 * time.Millisecond)
	s.say("neighbour: %s alone", v.Name())
	alone, err := s.do(ctx, s.job(v, w))
	if err != nil {
		return err
	}
	cores, err := cpu.CountsWithContext(ctx, true)
	if err != nil {
		return fmt.Errorf("count the CPUs: %w", err)
	}
	s.say("neighbour: %s beside processes that burn CPU", v.Name())
	job := s.job(v, w)
	burners := &burners{n: int(math.Ceil(neighbours * float64(cores)))}
	defer burners.stop() // if the run fails too
	job.Phase = burners.during
	beside, err := s.do(ctx, job)
	burned, trouble := burners.stop()
	if err != nil || trouble != nil {
		return errors.Join(err, trouble)
	}
	seen, quiet := beside.Generator.OtherCPU, alone.Generator.OtherCPU
	if seen == nil || quiet == nil {
		c.unsure("this system does not say what its processes use")
		return nil
	}
	// They may have run somewhat longer than the run's readings.
	used := burned.Seconds() / burners.lasted.Seconds() / float64(cores) * 100
	c.inform("burned, of all cores", used, results.Percent)
	if used < leastBurned { // the machine was too busy to let them
		c.unsure("the processes that were to burn CPU came to %.1f %% of all cores only", used)
		return nil
	}
	c.want(*seen >= used/2, "beside them: other CPU", *seen, results.Percent, "at least half of what they burned")
	c.want(labels(beside) == (*seen > labelled), "beside them: labelled so", truth(labels(beside)), results.Number, "%v", truth(*seen > labelled))
	// Other processes may be active independently of this check.
	c.hope(*quiet <= labelled, "alone: other CPU", *quiet, results.Percent, "at most %v %%", labelled)
	c.want(labels(alone) == (*quiet > labelled), "alone: labelled so", truth(labels(alone)), results.Number, "%v", truth(*quiet > labelled))
	return nil
}

const (
	neighbours  = 0.3  // processes per core
	labelled    = 10.0 // percent of all cores above which a run gets the label
	leastBurned = 2.0  // percent; below it the system's ticks of 10 ms show too little
)

func labels(r *results.Run) bool {
	return slices.ContainsFunc(r.Labels, func(label string) bool { return strings.HasPrefix(label, results.OtherCPU) })
}

// burners are shells that use as much CPU as they can.
type burners struct {
	n       int
	started time.Time
	lasted  time.Duration
	running []*exec.Cmd
	failed  error
}

// during runs them in the run's window and slightly longer.
func (b *burners) during(phase string) {
	switch phase {
	case "measure":
		b.start()
	case "drain":
		b.halt()
	}
}

// mostBurned is the CPU time in seconds after which the system ends a shell that a killed check left.
const mostBurned = 60

func (b *burners) start() {
	b.started = time.Now()
	for range b.n {
		shell := exec.Command("sh", "-c", fmt.Sprintf("ulimit -t %d; while :; do :; done", mostBurned))
		if err := shell.Start(); err != nil {
			b.failed = fmt.Errorf("start a process that burns CPU: %w", err)
			return
		}
		b.running = append(b.running, shell)
	}
}

// halt kills them.
func (b *burners) halt() {
	for _, shell := range b.running {
		_ = shell.Process.Kill() // they end in no other way
		_ = shell.Wait()         // with the signal's error
	}
	if b.lasted == 0 && !b.started.IsZero() {
		b.lasted = time.Since(b.started)
	}
}

// stop kills them if they still run, and returns their CPU time.
func (b *burners) stop() (time.Duration, error) {
	if b.lasted == 0 {
		b.halt()
	}
	var used time.Duration
	for _, shell := range b.running {
		used += shell.ProcessState.UserTime() + shell.ProcessState.SystemTime()
	}
	return used, b.failed
}
