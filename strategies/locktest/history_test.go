package locktest_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// at is an operation of a client for key "k", between two times in ms.
func at(client int, call, ret time.Duration, event locktest.Event, lease int) locktest.Operation {
	return locktest.Operation{
		Client: client, Key: "k", Event: event, Lease: lease,
		Call: call * time.Millisecond, Return: ret * time.Millisecond,
	}
}

func until(o locktest.Operation, end time.Duration) locktest.Operation {
	o.Until = end * time.Millisecond
	return o
}

func token(o locktest.Operation, token int64) locktest.Operation {
	o.Token = token
	return o
}

func onKey(o locktest.Operation, key string) locktest.Operation {
	o.Key = key
	return o
}

func TestCheckHistory(t *testing.T) {
	const (
		acquired, failed, refused = locktest.Acquired, locktest.Failed, locktest.Refused
		released, lost, unclear   = locktest.Released, locktest.Lost, locktest.Unclear
		mutex, fenced             = locktest.Mutex, locktest.FencedMutex
	)
	type history = []locktest.Operation
	for _, test := range []struct {
		name    string
		model   locktest.Model
		history history
		ok      bool
	}{
		{"nothing", mutex, nil, true},
		{"one after the other", mutex, history{
			at(0, 0, 1, acquired, 1), at(0, 2, 3, released, 1), at(1, 4, 5, acquired, 2), at(1, 6, 7, released, 2),
		}, true},
		{"granted while the release is on its way", mutex, history{
			at(0, 0, 1, acquired, 1), at(1, 0, 4, acquired, 2), at(0, 3, 6, released, 1), at(1, 7, 8, released, 2),
		}, true},
		{"granted before the release began", mutex, history{
			at(0, 0, 1, acquired, 1), at(1, 0, 2, acquired, 2), at(0, 3, 6, released, 1), at(1, 7, 8, released, 2),
		}, false},
		{"granted twice, never released", mutex, history{
			at(0, 0, 1, acquired, 1), at(1, 2, 3, acquired, 2),
		}, false},
		{"keys are independent", mutex, history{
			at(0, 0, 1, acquired, 1), onKey(at(1, 2, 3, acquired, 2), "other"),
		}, true},
		{"granted twice on one of two keys", mutex, history{
			at(0, 0, 1, acquired, 1), onKey(at(1, 2, 3, acquired, 2), "other"),
			onKey(at(2, 4, 5, acquired, 3), "other"),
		}, false},

		{"a lease that ran out is taken over", mutex, history{
			until(at(0, 0, 1, acquired, 1), 100), at(1, 2, 101, acquired, 2),
		}, true},
		{"a lease is taken over before it ran out", mutex, history{
			until(at(0, 0, 1, acquired, 1), 100), at(1, 2, 99, acquired, 2),
		}, false},
		{"a lease that ran out is released all the same", mutex, history{
			until(at(0, 0, 1, acquired, 1), 100), at(0, 150, 151, released, 1), at(1, 200, 201, acquired, 2),
		}, true},
		{"a late release finds the lease lost", mutex, history{
			until(at(0, 0, 1, acquired, 1), 100), at(1, 110, 111, acquired, 2), at(0, 150, 151, lost, 1),
			at(1, 160, 161, released, 2),
		}, true},
		{"a late release frees another's", mutex, history{
			until(at(0, 0, 1, acquired, 1), 100), at(1, 110, 111, acquired, 2), at(0, 150, 151, released, 1),
		}, false},
		{"a valid lease is lost", mutex, history{
			until(at(0, 0, 1, acquired, 1), 100), at(0, 50, 51, lost, 1),
		}, false},
		{"released twice", mutex, history{
			at(0, 0, 1, acquired, 1), at(0, 2, 3, released, 1), at(0, 4, 5, released, 1),
		}, false},
		{"released twice, and told so", mutex, history{
			at(0, 0, 1, acquired, 1), at(0, 2, 3, released, 1), at(0, 4, 5, lost, 1),
		}, true},

		{"a try is refused while another holds", mutex, history{
			at(0, 0, 1, acquired, 1), at(1, 2, 3, refused, 0), at(0, 4, 5, released, 1),
		}, true},
		{"a try is refused and nobody holds", mutex, history{
			at(0, 0, 1, acquired, 1), at(0, 2, 3, released, 1), at(1, 4, 5, refused, 0),
		}, false},
		{"two tries that meet are refused", mutex, history{
			at(0, 0, 4, refused, 0), at(1, 3, 6, refused, 0),
		}, true},
		{"a try is refused by a lease that has run out", mutex, history{
			until(at(0, 0, 1, acquired, 1), 100), at(1, 110, 111, refused, 0),
		}, true},
		{"an acquire that timed out may still hold", mutex, history{
			at(0, 0, 10, failed, 0), at(1, 20, 21, refused, 0), at(1, 30, 31, refused, 0),
		}, true},
		{"an acquire that timed out may not hold", mutex, history{
			at(0, 0, 10, failed, 0), at(1, 20, 21, acquired, 1), at(1, 22, 23, released, 1),
		}, true},
		{"an acquire that timed out may come to hold later", mutex, history{
			at(0, 0, 1, acquired, 1), at(1, 2, 10, failed, 0), at(0, 20, 21, released, 1), at(2, 30, 31, refused, 0),
		}, true},
		{"an acquire that timed out holds no more once another was granted", mutex, history{
			at(1, 2, 3, failed, 0), at(2, 4, 5, refused, 0), at(0, 10, 11, acquired, 1), at(0, 20, 21, released, 1),
		}, true},
		{"a try is refused before the acquire that timed out", mutex, history{
			at(1, 0, 1, refused, 0), at(0, 2, 10, failed, 0),
		}, false},
		{"an acquire that timed out does not excuse two holders", mutex, history{
			at(0, 0, 10, failed, 0), at(1, 20, 21, acquired, 1), at(2, 22, 23, acquired, 2),
		}, false},

		{"an unclear release may have released", mutex, history{
			at(0, 0, 1, acquired, 1), at(0, 2, 3, unclear, 1), at(1, 4, 5, acquired, 2),
		}, true},
		{"an unclear release may not have released", mutex, history{
			at(0, 0, 1, acquired, 1), at(0, 2, 3, unclear, 1), at(1, 4, 5, refused, 0),
		}, true},
		{"an unclear release comes after its call", mutex, history{
			at(0, 0, 1, acquired, 1), at(1, 2, 3, acquired, 2), at(0, 4, 5, unclear, 1),
		}, false},

		{"tokens grow", fenced, history{
			token(at(0, 0, 1, acquired, 1), 1), at(0, 2, 3, released, 1), token(at(1, 4, 5, acquired, 2), 7),
		}, true},
		{"a token comes twice", fenced, history{
			token(at(0, 0, 1, acquired, 1), 7), at(0, 2, 3, released, 1), token(at(1, 4, 5, acquired, 2), 7),
		}, false},
		{"tokens go back", fenced, history{
			token(at(0, 0, 1, acquired, 1), 7), at(0, 2, 3, released, 1), token(at(1, 4, 5, acquired, 2), 3),
		}, false},
		{"tokens go back on a plain mutex", mutex, history{
			token(at(0, 0, 1, acquired, 1), 7), at(0, 2, 3, released, 1), token(at(1, 4, 5, acquired, 2), 3),
		}, true},
		{"tokens tell the order of acquires that meet", fenced, history{
			token(at(0, 0, 9, acquired, 1), 2), at(0, 10, 11, released, 1), token(at(1, 0, 5, acquired, 2), 1),
			at(1, 6, 7, released, 2),
		}, true},
		{"tokens against the order of grants", fenced, history{
			token(at(0, 0, 9, acquired, 1), 1), at(0, 10, 11, released, 1), token(at(1, 0, 5, acquired, 2), 2),
			at(1, 6, 7, released, 2),
		}, false},
		{"a token is lost with an acquire that timed out", fenced, history{
			token(at(0, 0, 1, acquired, 1), 1), at(0, 2, 3, released, 1), at(1, 4, 9, failed, 0),
			token(at(2, 10, 11, acquired, 2), 3),
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			err := locktest.CheckHistory(test.model, test.history, dir)
			drawings, _ := os.ReadDir(dir)
			if test.ok {
				if err != nil || len(drawings) > 0 {
					t.Errorf("a possible history is refused: %v (%d drawings)", err, len(drawings))
				}
				return
			}
			if err == nil {
				t.Fatal("an impossible history is accepted")
			}
			if !strings.Contains(err.Error(), "not that of a "+test.model.String()) {
				t.Errorf("%v does not name the model", err)
			}
			path := regexp.MustCompile(`\S+\.html$`).FindString(err.Error())
			page, readErr := os.ReadFile(path)
			if readErr != nil || !strings.Contains(string(page), "<html") ||
				!strings.Contains(string(page), "acquire → ") && !strings.Contains(string(page), "try → ") {
				t.Errorf("%v: no drawing of the history there (%v)", err, readErr)
			}
		})
	}
}

// What is recorded of concurrent clients is a history that CheckHistory accepts,
// and holds everything that they did.
func TestHistoryRecords(t *testing.T) {
	const clients, turns = 4, 20
	locker, err := baselines.OpenLocal(strategies.Config{}, baselines.Options{})
	if err != nil {
		t.Fatal(err)
	}
	history := locktest.NewHistory()
	var all sync.WaitGroup
	for client := range clients {
		watched := history.Watch(client, locker)
		trier, ok := strategies.As[strategies.Trier](watched)
		if !ok {
			t.Fatal("the try-lock is lost")
		}
		all.Go(func() {
			for range turns {
				lease, err := trier.TryAcquire(t.Context(), "k")
				if errors.Is(err, strategies.ErrHeld) {
					lease, err = watched.Acquire(t.Context(), "k")
				}
				if err != nil {
					t.Error(err)
					return
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	watched := history.Watch(clients, locker)
	lease, err := watched.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := watched.Acquire(ended, "k"); err == nil {
		t.Fatal("acquired what is held")
	}
	for range 2 {
		_ = lease.Release(t.Context())
	}
	count := map[locktest.Event]int{}
	for _, o := range history.Operations() {
		count[o.Event]++
		if o.Return < o.Call {
			t.Errorf("%v ended before it began", o)
		}
	}
	const leases = clients*turns + 1
	if count[locktest.Acquired] != leases || count[locktest.Released] != leases || count[locktest.Failed] != 1 ||
		count[locktest.Lost] != 1 {
		t.Errorf("recorded %v, want %d leases acquired and released, 1 failed acquire and 1 release too many", count,
			leases)
	}
	if err := locktest.CheckHistory(locktest.Mutex, history.Operations(), t.TempDir()); err != nil {
		t.Error(err)
	}
}
