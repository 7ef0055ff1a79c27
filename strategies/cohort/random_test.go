package cohort

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// crowd is clients of several processes who come and go at random, and what they got. In
// a bubble all that happens has its instant, and none is shared: whose turn it is and who
// came before is exact.
type crowd struct {
	*bench
	troubled bool

	mu      sync.Mutex
	current *Lease // the last that was granted; nil once it is released
	grants  []granted
}

type granted struct {
	client, process int
	token           int64
	came, got       time.Time
	batch           int64 // its first token
}

// pause takes about that long, and ends at an instant that is nobody else's.
func pause(most time.Duration, who int) {
	now := time.Now()
	then := now.Add(rand.N(most)).Truncate(time.Microsecond).Add(time.Microsecond + time.Duration(who))
	time.Sleep(then.Sub(now))
}

// enter notes a lease, and sees that there is no other.
func (c *crowd) enter(client, process int, came time.Time, held *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.current != nil && !c.current.batch.block.(*lease).forgotten() && now.Before(c.current.ValidUntil()) {
		c.Errorf("token %d was granted while %d was valid for %v", held.fence, c.current.fence, c.current.ValidUntil().Sub(now))
	}
	if n := len(c.grants); n > 0 && held.fence <= c.grants[n-1].token {
		c.Errorf("token %d came after %d", held.fence, c.grants[n-1].token)
	}
	first, n := held.batch.block.Fences()
	if held.fence < first || held.fence >= first+n {
		c.Errorf("token %d is not of the block of %d from %d", held.fence, n, first)
	}
	c.current = held
	c.grants = append(c.grants, granted{client, process, held.fence, came, now, first})
}

// leave notes that a lease is about to be released.
func (c *crowd) leave(held *Lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == held {
		c.current = nil
	}
}

// client takes turns.
func (c *crowd) client(number, process, turns int) {
	for range turns {
		pause(300*time.Microsecond, number)
		ctx, cancel := context.Background(), func() {}
		if c.troubled && rand.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, rand.N(2*testTTL))
		}
		came := time.Now()
		held, err := c.lockers[process].acquire(ctx, "key")
		if err == nil {
			c.enter(number, process, came, held)
			c.hold(number, held)
		} else if !c.troubled || ctx.Err() == nil && !errors.Is(err, errFault) {
			c.Errorf("an acquire returned %v", err)
		}
		cancel()
	}
}

// hold has somebody hold the lock, extend it, or do neither for too long, or for ever.
func (c *crowd) hold(number int, held *Lease) {
	pause(50*time.Microsecond, number)
	if c.troubled {
		switch rand.IntN(30) {
		case 0:
			pause(3*testTTL, number)
		case 1:
			_ = held.Extend(context.Background(), rand.N(2*testTTL))
			pause(testTTL, number)
		case 2:
			return
		default:
			pause(testTTL/3, number)
		}
	}
	c.leave(held)
	ctx, cancel := context.WithTimeout(context.Background(), testTTL)
	defer cancel()
	if c.troubled && rand.IntN(8) == 0 {
		cancel()
	}
	late := !time.Now().Before(held.ValidUntil())
	err := held.Release(ctx)
	if late && !errors.Is(err, strategies.ErrNotHeld) || !c.troubled && err != nil {
		c.Errorf("a release returned %v (late: %v)", err, late)
	}
	if err == nil || errors.Is(err, strategies.ErrNotHeld) {
		if err := held.Release(context.Background()); !errors.Is(err, strategies.ErrNotHeld) {
			c.Errorf("a second release returned %v", err)
		}
	}
}

// play has all clients take their turns.
func (c *crowd) play(clients, turns int) {
	var all sync.WaitGroup
	for process, p := range c.processes {
		c.faults(process, func(command string) fault {
			trip := time.Duration(20+rand.IntN(100))*time.Microsecond + time.Duration(500+process)
			f := fault{delay: trip}
			if command == "acquire" { // whoever comes stands in the queue
				f = fault{slow: trip}
			}
			if c.troubled && command != "leave" && rand.IntN(8) == 0 {
				f.lost, f.mute = rand.IntN(2) == 0, rand.IntN(2) == 0
			}
			return f
		})
		for n := range clients {
			all.Go(func() { c.client(process*clients+n, p.number, turns) })
		}
	}
	stop := make(chan struct{})
	var trouble sync.WaitGroup
	if c.troubled {
		trouble.Go(func() { c.lose(stop) })
	}
	all.Wait()
	close(stop)
	trouble.Wait()
}

// lose has Redis lose its data now and then.
func (c *crowd) lose(stop <-chan struct{}) {
	for range 20 {
		select {
		case <-stop:
			return
		case <-time.After(rand.N(5 * testTTL)):
		}
		c.server.forget(c.processes...)
	}
}

func play(t *testing.T, processes, clients, turns int, options Options, troubled bool, check func(*crowd)) {
	inBubble(t, processes, options, func(b *bench) {
		c := &crowd{bench: b, troubled: troubled}
		c.play(clients, turns)
		time.Sleep(3 * testTTL) // what was never released is over
		synctest.Wait()
		for _, l := range b.lockers {
			for process := range b.lockers {
				b.faults(process, noFaults)
			}
			held, err := l.acquire(context.Background(), "key")
			if err != nil {
				b.Fatalf("afterwards an acquire returned %v", err)
			}
			b.release(held, nil)
			if n := len(l.cohorts); n > 0 {
				b.Errorf("%d cohorts are left", n)
			}
		}
		check(c)
	})
}

// Whatever happens, no two hold the lock while both leases are valid, tokens grow, and
// whoever waits is served: else the bubble's clients would be found to be deadlocked.
func TestTroubledCrowd(t *testing.T) {
	for range 30 {
		play(t, 1+rand.IntN(4), 1+rand.IntN(6), 15, Options{Batch: 1 + rand.IntN(6)}, true, func(*crowd) {})
	}
}

// The natural bound: nobody is overtaken within a process, nor by more than one batch of
// another process for each batch of his own that he has to wait for; and a wait is at
// most twice as many turns long as others want.
func TestNobodyIsOvertakenByMoreThanABatch(t *testing.T) {
	const clients, turns = 7, 20
	for _, options := range []Options{Defaults(), {Batch: 3}, {Batch: 1}} {
		for _, processes := range []int{1, 2, 5} {
			overtaken, longest := 0, 0
			play(t, processes, clients, turns, options, false, func(c *crowd) {
				if want := processes * clients * turns; len(c.grants) != want {
					c.Errorf("%d grants, want %d", len(c.grants), want)
				}
				for i := range c.grants {
					n, turns := c.before(i, min(options.Batch, clients))
					overtaken, longest = max(overtaken, n), max(longest, turns)
				}
			})
			if most := 2 * (processes*clients - 1); options.Batch >= clients && longest > most {
				t.Errorf("%d processes: a wait took %d turns of others, want %d at most", processes, longest, most)
			}
			t.Logf("%d processes, batches of %d: overtaken by %d at most, waits of up to %d turns", processes, options.Batch, overtaken, longest)
		}
	}
}

// before is how many overtook the one who got grant i, and how many turns others took
// while he waited.
func (c *crowd) before(i, size int) (overtakes, turns int) {
	w := c.grants[i]
	formed := map[int64]time.Time{}    // when the batches' leases arrived
	others := map[int]map[int64]bool{} // the batches of each process that were formed while he waited
	overtaken := map[int64]int{}       // by how many of each
	for _, g := range c.grants[:i+1] {
		if _, ok := formed[g.batch]; !ok {
			formed[g.batch] = g.got
		}
		if formed[g.batch].After(w.came) {
			if others[g.process] == nil {
				others[g.process] = map[int64]bool{}
			}
			others[g.process][g.batch] = true
		}
		if g.got.After(w.came) && g.token != w.token {
			turns++
		}
		if g.came.After(w.came) {
			overtaken[g.batch]++
			overtakes++
			if g.process == w.process {
				c.Errorf("token %d: it was overtaken within its process, by %d", w.token, g.token)
			}
		}
	}
	for batch, n := range overtaken {
		if n > size {
			c.Errorf("token %d: %d of the batch from %d overtook it", w.token, n, batch)
		}
	}
	rounds := len(others[w.process])
	for process, batches := range others {
		n := 0
		for batch := range batches {
			if overtaken[batch] > 0 {
				n++
			}
		}
		if n > rounds {
			c.Errorf("token %d: %d batches of process %d overtook it in %d rounds of its own", w.token, n, process, rounds)
		}
	}
	if most := rounds * (len(c.processes) - 1) * size; overtakes > most {
		c.Errorf("token %d: it was overtaken %d times, at most %d were due", w.token, overtakes, most)
	}
	return overtakes, turns
}
