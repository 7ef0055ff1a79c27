package advise

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

func TestWindowsServeEveryClientTwice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 21))
	short := 0
	for range 500 {
		q := asked(func(q *Question) {
			q.For = either[random.IntN(2)]
			w := &q.Workload
			w.Clients, w.Keys = 1+random.IntN(2000), 1+random.IntN(50)
			w.Instances = min(w.Clients, 1+random.IntN(10))
			w.Hold = workloads.Fixed(time.Duration(random.IntN(20)) * time.Millisecond)
		}).Sized(false, false)
		w := q.Workload
		window, want := time.Duration(w.Duration), 2*time.Duration(w.Clients)*w.Hold.Mean()/time.Duration(w.Keys)
		switch {
		case window < leastWindow || time.Duration(w.Warmup) < leastWarmup:
			t.Fatalf("%v after %v is too short", window, w.Warmup)
		case q.Expected() > allowed && window > leastWindow:
			t.Fatalf("it takes %v", q.Expected())
		case q.Needed() == 0 && window+10*time.Millisecond < want:
			t.Fatalf("%s: %v is less than %v, and it does not say so", w.Describe(), window, want)
		case q.Needed() > 0:
			short++
			if q.Needed()+10*time.Millisecond < want || q.Needed() <= window {
				t.Fatalf("%s: it says that %v is needed, and that is %v", w.Describe(), q.Needed(), want)
			}
		}
	}
	if short < 25 || short > 475 {
		t.Errorf("%d of 500 questions have too short a window: the test looks at one kind only", short)
	}
}

// TestTheExampleHasTimeEnough is the question of README.
func TestTheExampleHasTimeEnough(t *testing.T) {
	t.Parallel()
	for _, purpose := range either {
		q := asked(func(q *Question) {
			q.For, q.Workload.Clients, q.Workload.Instances = purpose, 200, 4
		}).Sized(false, false)
		if q.Needed() != 0 || time.Duration(q.Workload.Duration) < 2*time.Second || q.Expected() > allowed {
			t.Errorf("%s: windows of %v, %v needed, %v in all", purpose, q.Workload.Duration, q.Needed(), q.Expected())
		}
	}
}

func TestGivenWindowsStay(t *testing.T) {
	t.Parallel()
	long := workloads.Duration(time.Hour)
	q := asked(func(q *Question) { q.Workload.Duration, q.Workload.Warmup = long, long }).Sized(true, true)
	if q.Workload.Duration != long || q.Workload.Warmup != long || q.Needed() != 0 {
		t.Errorf("%v after %v, %v needed", q.Workload.Duration, q.Workload.Warmup, q.Needed())
	}
}
