package etcd_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/strategies/etcd"
)

// Claim: a Mutex watches from a revision that is past, which etcd serves every 100 ms. Two
// clients that take turns at the same queue with watches that are not past need less than half
// the time; it is a fifteenth on an idle machine. Both take turns on one etcd, so that
// whatever slows one down slows both down.
func TestAMutexHandsOverInSteps(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // where a sync takes no time, however busy the disk is
	}
	const turns = 20
	server := etcdtest.Start(t, 1)
	took := map[etcd.Watch][]time.Duration{}
	for range 3 {
		for _, watch := range []etcd.Watch{etcd.ByMutex, etcd.ByNext} {
			took[watch] = append(took[watch], inTurns(t, server, watch, turns))
		}
	}
	mutex, next := slices.Min(took[etcd.ByMutex]), slices.Min(took[etcd.ByNext])
	t.Logf("%d turns of two clients take %v by Mutex, %v by the next revision", turns, mutex, next)
	if next*2 >= mutex {
		t.Errorf("%d turns take %v by Mutex and %v by the next revision: there is no step", turns, mutex, next)
	}
}

// inTurns is how long two clients take for so many acquisitions of one lock.
func inTurns(t *testing.T, server *etcdtest.Etcd, watch etcd.Watch, turns int64) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	var had atomic.Int64
	var clients sync.WaitGroup
	began := time.Now()
	for range 2 {
		locker, _ := open(t, server, etcd.Options{Watch: watch, Sessions: etcd.Pooled}, ttl)
		clients.Go(func() {
			defer locker.Close()
			for had.Add(1) <= turns {
				lease, err := locker.Acquire(ctx, "key")
				if err == nil {
					err = lease.Release(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	return time.Since(began)
}
