package etcd_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/strategies/etcd"
)

// Claim: a Mutex watches from a revision that is past, which etcd serves every 100 ms. The
// same queue with watches that are not past changes hands in less than half the time. Both
// take turns on one etcd, so that whatever slows one down slows both down.
func TestAMutexHandsOverInSteps(t *testing.T) {
	server := etcdtest.Start(t, 1)
	took := map[etcd.Watch][]time.Duration{}
	for range 9 {
		for _, watch := range []etcd.Watch{etcd.ByMutex, etcd.ByNext} {
			options := etcd.Options{Watch: watch, Sessions: etcd.Pooled}
			holder, client := open(t, server, options, ttl)
			waiter, _ := open(t, server, options, ttl)
			lease := acquire(t, holder, "key")
			next := waits(t, t.Context(), waiter, client, "key")
			time.Sleep(10 * time.Millisecond) // it has its watch by now
			began := time.Now()
			release(t, lease)
			release(t, (<-next).held(t))
			took[watch] = append(took[watch], time.Since(began))
			_, _ = holder.Close(), waiter.Close()
		}
	}
	mutex, next := median(took[etcd.ByMutex]), median(took[etcd.ByNext])
	t.Logf("a release and a handover take %v by Mutex, %v by the next revision", mutex, next)
	if next*2 >= mutex {
		t.Errorf("a handover takes %v by Mutex and %v by the next revision: there is no step", mutex, next)
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
