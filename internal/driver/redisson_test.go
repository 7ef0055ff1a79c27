package driver

import (
	"os"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/semaphore"
	"github.com/lockbench/lockbench/workloads"
)

// Half of the clients use Redisson, and half use lockbench's lock with the same keys. All clients must exclude each
// other. In the case "deaf", lockbench's lock uses other keys, so holders of the two locks must overlap.
func TestLocksAreSharedWithRedisson(t *testing.T) {
	const built, program = "../../drivers/redisson/target/driver-1.jar", "../../drivers/redisson/driver"
	if _, err := os.Stat(built); err != nil {
		t.Skip("its driver is not built: make drivers")
	}
	ours := map[string]strategies.Strategy{"semaphore": semaphore.Strategy()}
	for _, s := range redisson.Strategies() {
		ours[s.Info.Name] = s
	}
	deaf := ours["pubsub"].Info // it locks other keys than Redisson, so the two halves do not exclude each other
	deaf.Name = "deaf"
	ours["deaf"] = strategies.Define(deaf, redisson.PubSubDefaults(),
		func(c goredis.Config, o redisson.PubSubOptions) (*redisson.Locker, error) {
			c.Prefix += "other:"
			return redisson.OpenPubSub(c, o)
		})
	for _, test := range extent.Chosen([]struct{ ours, theirs string }{
		{"pubsub", "lock"},
		{"deaf", "lock"},
		{"fair", "fair"},
		{"fenced", "fenced"},
		{"redisson-spin", "spin"},
		{"semaphore", "semaphore"},
	}) {
		t.Run(test.ours, func(t *testing.T) { // not in parallel, because each needs the processor
			words := []string{program, test.theirs}
			hello, err := Greet(t.Context(), words)
			if err != nil {
				t.Fatal(err)
			}
			var options map[string]string
			if test.ours == "semaphore" {
				options = map[string]string{"permits": "2"} // the number of the driver's semaphore
			}
			own, err := ours[test.ours].Variant(options)
			if err != nil {
				t.Fatal(err)
			}
			mixed, err := strategies.Mix(own, variant("exec:redisson "+test.theirs, words, hello, usual))
			if err != nil {
				t.Fatal(err)
			}
			w := small()
			w.Clients, w.Instances, w.Hold = 8, 2, workloads.Fixed(time.Millisecond)
			holders := own.Info().Capacity
			if holders == 1 {
				w.Work, w.Fence = workloads.WorkCounter, workloads.FenceOff
			}
			w.Warmup, w.Duration = workloads.Duration(2*time.Second), workloads.Duration(3*time.Second)
			run := measured(t, mixed, w)
			s := run.Safety
			if test.ours == "deaf" {
				if s.Overlaps == 0 || s.LostUpdates == nil || *s.LostUpdates == 0 || len(s.Broken) != 1 {
					t.Errorf("two locks on two keys do not exclude each other: %+v", s)
				}
				return
			}
			if s.Overlaps+s.ExpiredOverlaps+s.LostLeases > 0 || s.MaxHolders != holders ||
				len(s.Broken)+len(run.Errors) > 0 || holders == 1 && (s.LostUpdates == nil || *s.LostUpdates > 0) || s.Hung > 0 {
				t.Errorf("%+v, %v, %v", s, run.Errors, run.Invalid)
			}
			// The end of the run interrupts waiters, whose entries may remain in the queue of Redisson's fair lock.
			if test.ours != "fair" && *s.LeftoverCount > 0 {
				t.Errorf("it left %q", s.Leftovers)
			}
			for _, part := range run.Parts {
				if part.Clients != 4 || part.Acquisitions == 0 {
					t.Errorf("%+v", part)
				}
			}
			if test.ours == "fenced" && s.FencedLeases < run.Speed.Acquisitions || s.FencingRegression > 0 {
				t.Errorf("%d leases of %d have a token, %d tokens are not larger than an earlier one", s.FencedLeases,
					run.Speed.Acquisitions, s.FencingRegression)
			}
			if test.ours == "fair" && *run.Fairness.Overtaken > crossing {
				t.Errorf("%v %% were overtaken, across both: %+v", *run.Fairness.Overtaken, run.Parts)
			}
		})
	}
}

// crossing is the percentage of a fair lock's waiters that may be overtaken. Some are, because requests may reach Redis
// in another order than the clients sent them. With an RLock, which is not fair, nearly all waiters are overtaken.
const crossing = 10
