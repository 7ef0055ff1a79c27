package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/measure"
)

// soon is the time before the planned end of a run in which lockbench sends no stop request, because the run then ends
// by itself.
const soon = 200 * time.Millisecond

// Drive makes the driver run the clients of an Assignment. It checks every response of the driver and passes the cycles
// to report. On an error it kills the driver.
func (d *Driver) Drive(ctx context.Context, a engine.Assignment, report func([]engine.Cycle) error) error {
	if err := d.drive(ctx, a, report); err != nil {
		return d.fail(err)
	}
	return nil
}

func (d *Driver) drive(ctx context.Context, a engine.Assignment, report func([]engine.Cycle) error) error {
	check := newChecker(a)
	answers, forget, _, err := d.give(check.question())
	if err != nil {
		return err
	}
	defer forget()
	silence := time.NewTimer(d.patience.run)
	defer silence.Stop()
	end := time.NewTimer(time.Until(a.Clock.Time(a.Stop)) + d.patience.stop)
	defer end.Stop()
	stopped := a.Stopped
	for {
		select {
		case h := <-answers:
			silence.Reset(d.patience.run)
			if err := check.keep(h, report); err != nil {
				return err
			}
			if h.Done {
				return d.checkClock(ctx)
			}
		case <-stopped: // also at the usual end
			stopped = nil
			if a.Clock.Now()+int64(soon) < a.Stop {
				if _, _, _, err := d.give(question{Do: "stop"}); err != nil {
					return err
				}
			}
			end.Reset(d.patience.stop)
		case <-silence.C:
			return fmt.Errorf("the driver has sent no report on its clients for %v", d.patience.run)
		case <-end.C:
			return fmt.Errorf("the driver's clients did not stop within %v after the end of the run", d.patience.stop)
		case <-d.ended:
			for len(answers) > 0 { // reports that arrived before the driver ended
				if err := check.keep(<-answers, report); err != nil {
					return err
				}
			}
			return d.reason()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// checker checks the cycles that a driver reports in a run, and converts their times to Assignment.Clock.
type checker struct {
	engine.Assignment
	ahead   int64 // CLOCK_MONOTONIC minus Assignment.Clock, ns
	stop    int64 // by CLOCK_MONOTONIC, ns
	clients map[int]*progress
	errors  map[string]engine.CycleError // texts that are safe to print, by the driver's own text
}

// mostErrors is the number of different errors that a run counts separately. All further ones count as "other errors".
const mostErrors = 100

// progress is the state of a client after its last reported cycle. Times are ns of CLOCK_MONOTONIC.
type progress struct {
	step  int   // index of the step of its next cycle
	since int64 // when its last lease was granted; if the cycle had no lease, when its wait began
	done  int64 // end of the cycle
}

func newChecker(a engine.Assignment) *checker {
	c := &checker{
		Assignment: a, ahead: ahead(a.Clock), clients: map[int]*progress{}, errors: map[string]engine.CycleError{},
	}
	c.stop = a.Stop + c.ahead
	for _, client := range a.Clients {
		c.clients[client.ID] = &progress{step: client.First, since: a.Start + c.ahead - 1, done: a.Start + c.ahead}
	}
	return c
}

// ahead returns CLOCK_MONOTONIC minus clock in ns. Both run at the same rate. Of ten comparisons it uses the one that
// took the least time.
func ahead(clock measure.Clock) (difference int64) {
	narrowest := int64(1) << 62
	for range 10 {
		before := clock.Now()
		now := monotonic()
		after := clock.Now()
		if after-before < narrowest {
			narrowest, difference = after-before, now-(before+after)/2
		}
	}
	return difference
}

// wrong returns the CycleError for an error that a driver reported. It limits the number and the length of these
// errors, because a run counts each different text separately.
func (c *checker) wrong(text string) engine.CycleError {
	known, ok := c.errors[text]
	switch {
	case ok:
		return known
	case len(c.errors) >= mostErrors:
		return "other errors"
	}
	c.errors[text] = engine.CycleError(short(text))
	return c.errors[text]
}

func (c *checker) question() question {
	q := question{Do: "run", Start: c.Start + c.ahead, Stop: c.stop, Keys: c.Keys, Count: c.Count}
	for _, client := range c.Clients {
		q.Clients = append(q.Clients, [2]int{client.ID, client.First})
	}
	for _, step := range c.Steps {
		q.Steps = append(q.Steps, [3]int64{int64(step.Key), int64(step.Hold), int64(step.Think)})
	}
	if c.Timeout != nil {
		q.Timeout = new(int64(*c.Timeout))
	}
	return q
}

// keep checks the cycles of a response and passes them to report. At the first impossible cycle it stops with an error.
func (c *checker) keep(h heard, report func([]engine.Cycle) error) error {
	if h.Error != "" {
		return fmt.Errorf("run: %s", short(h.Error))
	}
	var all []engine.Cycle
	for _, said := range h.Cycles {
		one, err := c.cycle(said, h.at+grain)
		if err != nil {
			return errors.Join(report(all), fmt.Errorf("the driver's report on client %d is impossible: %w", said.Client, err))
		}
		all = append(all, one)
	}
	return report(all)
}

func (c *checker) cycle(said cycle, now int64) (engine.Cycle, error) {
	client, ours := c.clients[said.Client]
	if !ours {
		return engine.Cycle{}, errors.New("the driver does not run this client")
	}
	leased := said.Granted != nil && said.Released != nil
	if !leased {
		said.Done = max(said.Done, said.Asked+1) // the wait ends after it began
	}
	granted, released, since := said.Done, said.Done, said.Asked
	if leased {
		granted, released, since = *said.Granted, *said.Released, *said.Granted
	}
	switch key := c.Steps[client.step].Key; {
	case said.Key != key:
		return engine.Cycle{}, fmt.Errorf("the key is %d, but the client's next step has key %d", said.Key, key)
	case (said.Granted == nil) != (said.Released == nil), !leased && (said.Token != nil || said.Until != nil):
		return engine.Cycle{}, errors.New("a cycle with a lease needs both granted and released; one without a lease must " +
			"have none of granted, released, token and valid_until")
	case !leased && (said.Error == nil || *said.Error == ""):
		return engine.Cycle{}, errors.New("the cycle has neither a lease nor an error")
	case said.Asked < client.done:
		return engine.Cycle{}, fmt.Errorf("asked is %v before the end of the client's previous cycle, "+
			"or before the start of the run", time.Duration(client.done-said.Asked))
	case said.Asked <= client.since:
		return engine.Cycle{}, errors.New("two consecutive cycles have the same timestamp, so the driver's clock " +
			"is too coarse")
	case granted < said.Asked, released < granted, said.Done < released:
		return engine.Cycle{}, errors.New("asked, granted, released and done are not in this order")
	case said.Done > now:
		return engine.Cycle{}, fmt.Errorf("the end of the cycle is %v in the future", time.Duration(said.Done-now))
	case said.Until != nil && (*said.Until < said.Asked-int64(mostValid) || *said.Until > said.Done+int64(mostValid)):
		return engine.Cycle{}, errors.New("the end of the lease's validity is not a CLOCK_MONOTONIC timestamp")
	}
	one := engine.Cycle{
		Client: said.Client, Step: client.step, Token: said.Token,
		Asked: said.Asked - c.ahead, Done: said.Done - c.ahead,
	}
	client.since = since
	if leased {
		one.Granted, one.Released = granted-c.ahead, released-c.ahead
		if said.Until != nil {
			one.Until = new(*said.Until - c.ahead)
		}
	}
	if said.Error != nil {
		one.Error = c.wrong(*said.Error)
	}
	client.step = (client.step + 1) % len(c.Steps)
	client.done = said.Done
	return one, nil
}
