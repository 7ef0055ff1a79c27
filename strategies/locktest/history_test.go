package locktest_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// events maps each result in the notation of TestCheckHistory to its Event.
var events = map[string]locktest.Event{
	"acquired": locktest.Acquired, "failed": locktest.Failed, "refused": locktest.Refused,
	"released": locktest.Released, "lost": locktest.Lost, "unclear": locktest.Unclear,
}

// operation matches one operation in the notation of TestCheckHistory: beginning and end in ms, the result and the
// lease's number, such as "0–1 acquired 1". The end of the lease, its token and the key are optional. The default key
// is k.
var operation = regexp.MustCompile(`^(\d+)–(\d+) (acquired|failed|refused|released|lost|unclear)` +
	`(?: (\d+))?(?: until (\d+))?(?: token (\d+))?(?: on (\w+))?$`)

func historyOf(t *testing.T, text string) (all []locktest.Operation) {
	t.Helper()
	for one := range strings.SplitSeq(text, ", ") {
		part := operation.FindStringSubmatch(one)
		if part == nil {
			t.Fatalf("%q is not an operation", one)
		}
		number := func(n int) int { is, _ := strconv.Atoi(part[n]); return is } // 0 if the part is missing
		ms := func(n int) time.Duration { return time.Duration(number(n)) * time.Millisecond }
		all = append(all, locktest.Operation{
			Client: number(4), Key: cmp.Or(part[7], "k"), Event: events[part[3]], Lease: number(4),
			Token: int64(number(6)), Call: ms(1), Return: ms(2), Until: ms(5),
		})
	}
	return all
}

func TestCheckHistory(t *testing.T) {
	const mutex, fenced = locktest.Mutex, locktest.FencedMutex
	for _, test := range []struct {
		name    string
		model   locktest.Model
		ok      bool
		history string
	}{
		{"one after the other", mutex, true, "0–1 acquired 1, 2–3 released 1, 4–5 acquired 2, 6–7 released 2"},
		{
			"granted while the release is on its way", mutex, true,
			"0–1 acquired 1, 0–4 acquired 2, 3–6 released 1, 7–8 released 2",
		},
		{
			"granted before the release began", mutex, false,
			"0–1 acquired 1, 0–2 acquired 2, 3–6 released 1, 7–8 released 2",
		},
		{"granted twice, never released", mutex, false, "0–1 acquired 1, 2–3 acquired 2"},
		{"keys are independent", mutex, true, "0–1 acquired 1, 2–3 acquired 2 on other"},
		{
			"granted twice on one of two keys", mutex, false,
			"0–1 acquired 1, 2–3 acquired 2 on other, 4–5 acquired 3 on other",
		},

		{"a lease that ran out is taken over", mutex, true, "0–1 acquired 1 until 100, 2–101 acquired 2"},
		{"a lease is taken over before it ran out", mutex, false, "0–1 acquired 1 until 100, 2–99 acquired 2"},
		{
			"a lease that ran out is still released", mutex, true,
			"0–1 acquired 1 until 100, 150–151 released 1, 200–201 acquired 2",
		},
		{
			"a late release finds the lease lost", mutex, true,
			"0–1 acquired 1 until 100, 110–111 acquired 2, 150–151 lost 1, 160–161 released 2",
		},
		{
			"a late release frees the lock of another holder", mutex, false,
			"0–1 acquired 1 until 100, 110–111 acquired 2, 150–151 released 1",
		},
		{"a valid lease is lost", mutex, false, "0–1 acquired 1 until 100, 50–51 lost 1"},
		{"released twice", mutex, false, "0–1 acquired 1, 2–3 released 1, 4–5 released 1"},
		{"released twice, and the second release is refused", mutex, true, "0–1 acquired 1, 2–3 released 1, 4–5 lost 1"},

		{"a try is refused while another client holds the lock", mutex, true, "0–1 acquired 1, 2–3 refused, 4–5 released 1"},
		{"a try is refused while the lock is free", mutex, false, "0–1 acquired 1, 2–3 released 1, 4–5 refused"},
		{"two concurrent tries are refused", mutex, true, "0–4 refused, 3–6 refused"},
		{"a try is refused by a lease that has run out", mutex, true, "0–1 acquired 1 until 100, 110–111 refused"},
		{"an acquire that timed out may still hold", mutex, true, "0–10 failed, 20–21 refused, 30–31 refused"},
		{"an acquire that timed out may not hold", mutex, true, "0–10 failed, 20–21 acquired 1, 22–23 released 1"},
		{
			"an acquire that timed out may hold the lock later", mutex, true,
			"0–1 acquired 1, 2–10 failed, 20–21 released 1, 30–31 refused",
		},
		{
			"an acquire that timed out does not hold the lock after another was granted", mutex, true,
			"2–3 failed, 4–5 refused, 10–11 acquired 1, 20–21 released 1",
		},
		{"a try is refused before the acquire that timed out", mutex, false, "0–1 refused, 2–10 failed"},
		{
			"an acquire that timed out does not excuse two holders", mutex, false,
			"0–10 failed, 20–21 acquired 1, 22–23 acquired 2",
		},

		{"an unclear release may have released", mutex, true, "0–1 acquired 1, 2–3 unclear 1, 4–5 acquired 2"},
		{"an unclear release may not have released", mutex, true, "0–1 acquired 1, 2–3 unclear 1, 4–5 refused"},
		{"an unclear release comes after its call", mutex, false, "0–1 acquired 1, 2–3 acquired 2, 4–5 unclear 1"},

		{"tokens grow", fenced, true, "0–1 acquired 1 token 1, 2–3 released 1, 4–5 acquired 2 token 7"},
		{"a token is granted twice", fenced, false, "0–1 acquired 1 token 7, 2–3 released 1, 4–5 acquired 2 token 7"},
		{"tokens go back", fenced, false, "0–1 acquired 1 token 7, 2–3 released 1, 4–5 acquired 2 token 3"},
		{
			"tokens go back on a plain mutex", mutex, true,
			"0–1 acquired 1 token 7, 2–3 released 1, 4–5 acquired 2 token 3",
		},
		{
			"tokens determine the order of concurrent acquires", fenced, true,
			"0–9 acquired 1 token 2, 10–11 released 1, 0–5 acquired 2 token 1, 6–7 released 2",
		},
		{
			"tokens against the order of grants", fenced, false,
			"0–9 acquired 1 token 1, 10–11 released 1, 0–5 acquired 2 token 2, 6–7 released 2",
		},
		{
			"a token is lost with an acquire that timed out", fenced, true,
			"0–1 acquired 1 token 1, 2–3 released 1, 4–9 failed, 10–11 acquired 2 token 3",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			err := locktest.CheckHistory(test.model, historyOf(t, test.history), dir)
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
			if !strings.Contains(err.Error(), "a "+test.model.String()+" cannot produce this history") {
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

// TestHistoryRecords records the calls of concurrent clients on a correct lock. The history must contain all their
// operations, and CheckHistory must accept it.
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
			t.Fatal("the watched Locker has no try-lock")
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
		t.Fatal("acquired a lock that is held")
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
