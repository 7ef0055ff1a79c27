package observe

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/apps/document"
)

// stream converts lines such as "120 c1 SET k a NX PX 50" (the time in ms, the client, the command) to a MONITOR
// stream. A command of a script has > in place of the client. # stands for a space within an argument.
func stream(lines ...string) string {
	var text strings.Builder
	for _, line := range lines {
		words := strings.Fields(line)
		from := words[1] + ":1"
		if strings.HasPrefix(words[1], ">") {
			from = "lua"
		}
		ms, err := strconv.Atoi(words[0])
		if err != nil {
			panic(err) // a mistake in the test's table
		}
		fmt.Fprintf(&text, "%d.%06d [0 %s]", 1_700_000_000+ms/1000, ms%1000*1000, from)
		for _, word := range words[2:] {
			fmt.Fprintf(&text, " %q", strings.ReplaceAll(word, "#", " "))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

func observed(t *testing.T, options Options, lines ...string) *Document {
	t.Helper()
	if options.Top == 0 {
		options.Top = 5
	}
	d, err := Read(t.Context(), strings.NewReader(stream(lines...)), options)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// known contains the lines of a release by script, after which the lock k is known to be free.
var known = []string{"0 c9 EVALSHA rel 1 k z", "0 > GET k", "0 > DEL k"}

func TestLeasesAreReconstructed(t *testing.T) {
	t.Parallel()
	release := func(ms int, client, owner string) []string {
		return []string{
			fmt.Sprintf("%d %s EVALSHA rel 1 k %s", ms, client, owner), fmt.Sprintf("%d > GET k", ms),
			fmt.Sprintf("%d > DEL k", ms),
		}
	}
	missed := func(ms int, client, owner string) []string { return release(ms, client, owner)[:2] }
	one := func(line string) []string { return []string{line} }
	for _, test := range []struct {
		name  string
		lines [][]string
		want  Counts
	}{
		{"a wait", [][]string{
			known, one("100 c1 SET k a NX PX 500"), one("110 c2 SET k b NX PX 500"), one("120 c2 SET k b NX PX 500"),
			release(150, "c1", "a"), one("160 c2 SET k b NX PX 500"), release(170, "c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 4, Commands: 13, Releases: 2, AtStart: 1}},
		{"expired and released late", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("149 c2 SET k b NX PX 500"), one("151 c2 SET k b NX PX 500"),
			missed(200, "c1", "a"), release(210, "c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 11, Releases: 1, Expired: 1, LateReleases: 1, AtStart: 1}},
		{"Redis refuses a try that MONITOR dates after the end of the TTL", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("153 c2 SET k b NX PX 500"), one("155 c2 SET k b NX PX 500"),
			missed(200, "c1", "a"), release(210, "c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 11, Releases: 1, Expired: 1, LateReleases: 1, AtStart: 1}},
		{"Redis refuses a try that MONITOR dates after the end of the TTL, and grants the next one", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("152 c2 SET k b NX PX 500"), one("153 c3 SET k c NX PX 500"),
			one("160 c2 SET k b NX PX 500"), missed(200, "c1", "a"), one("290 c2 SET k b NX PX 500"),
			release(300, "c3", "c"), one("310 c2 SET k b NX PX 500"), release(320, "c2", "b"),
		}, Counts{
			Acquisitions: 3, Tries: 6, Commands: 17, Releases: 2, Expired: 1, LateReleases: 1, AtStart: 1,
		}},
		{"a value that several clients have, after an expiry", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("400 c2 SET k b NX PX 500"), one("405 c3 SET k b NX PX 500"),
			release(410, "c2", "b"),
		}, Counts{
			Acquisitions: 2, Tries: 3, Commands: 9, Releases: 1, Expired: 1, SharedValue: 1, AtStart: 1,
		}},
		{"a release after each failed try", [][]string{
			known, one("100 c1 SET k a NX PX 500"), one("110 c2 SET k b NX PX 500"), missed(111, "c2", "b"),
			release(120, "c1", "a"),
		}, Counts{
			Acquisitions: 1, Tries: 2, Commands: 10, Releases: 1, IdleRelease: 1, TriedOnce: 0, Open: 1,
			AtStart: 1,
		}},
		{"the first lease of a capture is proved by its release", [][]string{
			one("100 c1 SET k a NX PX 500"), one("110 c2 SET k b NX PX 500"), release(120, "c1", "a"),
			one("130 c2 SET k b NX PX 500"), release(140, "c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 9, Releases: 2}},
		{"no TTL", [][]string{
			known, one("100 c1 SETNX k a"), one("101 c2 SETNX k b"), one("102 c2 SETNX k b"), release(103, "c1", "a"),
		}, Counts{Acquisitions: 1, Tries: 3, Commands: 9, Releases: 1, WithoutTTL: 1, Open: 1, AtStart: 1}},
		{"the first lease of a capture, whose client got its connection from a pool", [][]string{
			one("100 c1 SETNX k a"), one("101 c2 SETNX k b"), one("102 c2 EXPIRE k 10"), release(103, "c2", "a"),
			one("110 c1 SETNX k b"), one("111 c1 EXPIRE k 10"), release(120, "c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 11, Releases: 2, TTLApart: 2}},
		{"a TTL by a second command", [][]string{
			known, one("100 c1 SETNX k a"), one("101 c1 EXPIRE k 10"), release(103, "c1", "a"),
		}, Counts{Acquisitions: 1, Tries: 1, Commands: 8, Releases: 1, TTLApart: 1, AtStart: 1}},
		{"EXPIRE LT sets a TTL, because no TTL counts as an infinite one", [][]string{
			known, one("100 c1 SETNX k a"), one("101 c1 EXPIRE k 10 LT"), release(103, "c1", "a"),
		}, Counts{Acquisitions: 1, Tries: 1, Commands: 8, Releases: 1, TTLApart: 1, AtStart: 1}},
		{"EXPIRE GT and XX set no TTL", [][]string{
			known, one("100 c1 SETNX k a"), one("101 c1 EXPIRE k 10 GT"), one("102 c1 EXPIRE k 10 XX"),
			release(103, "c1", "a"),
		}, Counts{Acquisitions: 1, Tries: 1, Commands: 9, Releases: 1, WithoutTTL: 1, AtStart: 1}},
		{"PEXPIRE LT with a later end leaves the lease as it is", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("110 c1 PEXPIRE k 500 LT"), one("160 c2 SET k b NX PX 500"),
			release(170, "c2", "b"), missed(180, "c1", "a"),
		}, Counts{
			Acquisitions: 2, Tries: 2, Commands: 11, Releases: 1, Expired: 1, LateReleases: 1, AtStart: 1,
		}},
		{"a client deletes the lease of another", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("110 c2 SET k b NX PX 500"), one("120 c2 SET k b NX PX 500"),
			one("160 c2 SET k b NX PX 500"), one("170 c1 DEL k"), one("180 c2 DEL k"),
		}, Counts{
			Acquisitions: 2, Tries: 4, Commands: 9, Releases: 1, Expired: 1, LateReleases: 2,
			OthersDeleted: 1, UnsafeReleases: 2, AtStart: 1,
		}},
		{"a client deletes without having the lock", [][]string{
			known, one("100 c1 SET k a NX PX 500"), one("110 c2 SET k b NX PX 500"), one("120 c2 DEL k"),
		}, Counts{
			Acquisitions: 1, Tries: 2, Commands: 6, Releases: 1, OthersDeleted: 1, UnsafeReleases: 1, Open: 1,
			AtStart: 1,
		}},
		{"a delete of a lock that is free ends nothing", [][]string{
			known, one("100 c1 SET k a NX PX 500"), release(110, "c1", "a"), one("120 c1 DEL k"),
		}, Counts{Acquisitions: 1, Tries: 1, Commands: 8, Releases: 1, IdleRelease: 1, AtStart: 1}},
		{"all keys are deleted between two tests", [][]string{
			known, one("100 c1 SET k a NX PX 500"), one("110 c1 FLUSHDB"), one("120 c2 SET k b NX PX 500"),
			release(130, "c2", "b"), missed(140, "c1", "a"),
		}, Counts{Acquisitions: 2, Tries: 2, Commands: 10, Releases: 1, IdleRelease: 1, AtStart: 1}},
		{"SET XX shortens a lease that is given back", [][]string{
			known, one("100 c1 SET k a NX PX 9000"), one("120 c1 SET k a XX PX 50"), one("200 c2 SET k b NX PX 500"),
			release(210, "c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 2, Commands: 9, Renewals: 1, Releases: 2, AtStart: 1}},
		{"the first execution of a script is a release that comes too late", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("160 c2 SET k b NX PX 500"), one("200 c1 EVALSHA rel2 1 k a"),
			one("200 > GET k"), one("210 c2 EVALSHA rel2 1 k b"), one("210 > GET k"), one("210 > DEL k"),
			one("60000 c1 SET k c NX PX 500"), release(60010, "c1", "c"),
		}, Counts{
			Acquisitions: 3, Tries: 3, Commands: 14, Releases: 2, Expired: 1, LateReleases: 1, AtStart: 1,
		}},
		{"renewals that stop", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("140 c1 EVALSHA ren 1 k a 50"), one("140 > GET k"),
			one("140 > PEXPIRE k 50"), one("200 c2 SET k b NX PX 500"), release(210, "c2", "b"), missed(220, "c1", "a"),
		}, Counts{
			Acquisitions: 2, Tries: 2, Commands: 13, Renewals: 1, RenewalsStopped: 1, Expired: 1, LateReleases: 1,
			Releases: 1, AtStart: 1,
		}},
		{"a renewal", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("140 c1 EVALSHA ren 1 k a 50"), one("140 > GET k"),
			one("140 > PEXPIRE k 50"), one("180 c2 SET k b NX PX 50"), release(185, "c1", "a"),
		}, Counts{Acquisitions: 1, Tries: 2, Commands: 11, Releases: 1, Renewals: 1, Open: 1, AtStart: 1}},
		{"one value for all", [][]string{
			known, one("100 c1 SET k 1 NX PX 500"), one("110 c2 SET k 1 NX PX 500"), one("111 c3 SET k 1 NX PX 500"),
			one("120 c1 DEL k"),
		}, Counts{
			Acquisitions: 1, Tries: 3, Commands: 7, Releases: 1, SharedValue: 2, UnsafeReleases: 1, AtStart: 1,
		}},
		{"a SET without NX", [][]string{
			known, one("100 c1 SET k a NX PX 500"), one("110 c2 SET k b PX 500"), release(120, "c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 1, Commands: 8, Releases: 1, Overwritten: 1, WithoutNX: 1, AtStart: 1}},
		{"a client that gives up", [][]string{
			known, one("100 c1 SET k a NX PX 9000"), one("110 c2 SET k b NX PX 9000"), one("120 c2 SET k b NX PX 9000"),
			release(5000, "c1", "a"),
		}, Counts{Acquisitions: 1, Tries: 3, Commands: 9, Releases: 1, GaveUp: 1, AtStart: 1}},
		{"Redisson", [][]string{
			one("100 c1 EVAL acq 1 k 30000 me:1"), one("100 > exists k"), one("100 > hincrby k me:1 1"), one("100 > " +
				"pexpire k 30000"),
			one("110 c2 EVAL acq 1 k 30000 me:2"), one("110 > exists k"), one("110 > hexists k me:2"), one("110 > " +
				"pttl k"),
			one("120 c1 EVAL rel 2 k ch me:1"), one("120 > hexists k me:1"), one("120 > hincrby k me:1 -1"),
			one("120 > del k"),
			one("120 > publish ch 0"),
			one("130 c2 EVAL acq 1 k 30000 me:2"), one("130 > exists k"), one("130 > hincrby k me:2 1"), one("130 > " +
				"pexpire k 30000"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 17, Releases: 1}},
		{"EXISTS and SET (Node.js)", [][]string{
			one("100 c1 EVALSHA acq 1 k a 500"), one("100 > exists k"), one("100 > set k a PX 500"),
			one("110 c2 EVALSHA acq 1 k b 500"), one("110 > exists k"), release(120, "c1", "a"),
			one("130 c2 EVALSHA acq 1 k b 500"), one("130 > exists k"), one("130 > set k b PX 500"), release(140,
				"c2", "b"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 14, Releases: 2}},
		{"MSETNX (redislock)", [][]string{
			one("100 c1 EVALSHA acq 1 k a 500"), one("100 > msetnx k a"), one("100 > pexpire k 500"),
			one("110 c2 EVALSHA acq 1 k b 500"), one("110 > msetnx k b"),
			one("120 c1 EVALSHA rel 1 k a"), one("120 > mget k"), one("120 > del k"),
		}, Counts{Acquisitions: 1, Tries: 2, Commands: 8, Releases: 1, Open: 1}},
		{"a queue in Redis hands the lock over", [][]string{
			one("100 c1 EVALSHA acq 2 k q a 500"), one("100 > GET k"), one("100 > EXISTS q"), one("100 > SET k a PX " +
				"500"),
			one("110 c2 EVALSHA acq 2 k q b 500"), one("110 > GET k"), one("110 > RPUSH q x"), one("110 > APPEND k +"),
			one("110 > PTTL k"),
			one("120 c1 EVALSHA rel 2 k q a"), one("120 > GET k"), one("120 > LPOP q"), one("120 > SET k b+ PX 500"),
			one("130 c2 EVALSHA rel 2 k q b"), one("130 > GET k"), one("130 > LPOP q"), one("130 > DEL k"),
		}, Counts{Acquisitions: 2, Tries: 2, Commands: 17, Releases: 2}},
		{"a queue of which only the second lease shows who queued", [][]string{
			one("90 c3 SET k z NX PX 500"), one("100 c1 EVALSHA acq 2 k q a 500"), one("100 > GET k"), one("100 > " +
				"RPUSH q x"),
			one("100 > PTTL k"), one("110 c2 EVALSHA acq 2 k q b 500"), one("110 > GET k"), one("110 > RPUSH q x"),
			one("110 > PTTL k"),
			one("120 c3 EVALSHA rel 2 k q z"), one("120 > GET k"), one("120 > LPOP q"), one("120 > SET k a PX 500"),
			one("130 c1 EVALSHA rel 2 k q a"), one("130 > GET k"), one("130 > LPOP q"), one("130 > DEL k"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 17, Releases: 2, Open: 1}},
		{"a client queues by RPUSHX", [][]string{
			known, one("90 c3 SET k z NX PX 500"), one("100 c1 EVALSHA acq 2 k q a 500"), one("100 > GET k"),
			one("100 > RPUSH q x"),
			one("100 > PTTL k"), one("120 c3 EVALSHA rel 2 k q z"), one("120 > GET k"), one("120 > LPOP q"),
			one("120 > SET k a PX 500"),
			{"125 c2 RPUSHX q b#500"},
			one("130 c1 EVALSHA rel 2 k q a"), one("130 > " +
				"GET k"),
			one("130 > LPOP q"), one("130 > SET k b+ PX 500"),
		}, Counts{Acquisitions: 3, Tries: 3, Commands: 17, Releases: 2, AtStart: 1}},
		{"WATCH, GET, MULTI, UNLINK and EXEC", [][]string{
			known, one("100 c1 SET k a NX PX 500"), one("110 c1 WATCH k"), one("110 c1 GET k"), one("110 c1 MULTI"),
			one("111 c1 UNLINK k"), one("111 c1 EXEC"),
		}, Counts{Acquisitions: 1, Tries: 1, Commands: 7, Releases: 1, AtStart: 1}},
		{"SET XX renews", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("120 c1 SET k a XX PX 500"), one("200 c2 SET k b NX PX 500"),
			one("700 c2 SET k b NX PX 500"),
		}, Counts{Acquisitions: 2, Tries: 3, Commands: 7, Renewals: 1, RenewalsStopped: 1, Expired: 1, AtStart: 1}},
		{"SETNX and EXPIRE in a script", [][]string{
			known, one("100 c1 EVAL acq 1 k a 5"), one("100 > setnx k a"), one("100 > expire k 5"),
			one("110 c2 EVAL acq 1 k b 5"), one("110 > setnx k b"), release(120, "c1", "a"),
		}, Counts{Acquisitions: 1, Tries: 2, Commands: 11, Releases: 1, Open: 1, AtStart: 1}},
		{"a library that takes another value after its first try", [][]string{
			known, one("100 c1 SET k a NX PX 9000"), one("110 c2 SET k b NX PX 9000"),
			one("111 c2 SET k b2 NX PX 9000"), one("2000 c2 SET k b2 NX PX 9000"), one("2010 c3 SET k c NX PX " +
				"9000"), one("2011 c3 SET k c2 NX PX 9000"),
			one("2020 c3 SET k c2 NX PX 9000"), release(2030, "c1", "a"), one("2040 c2 SET k b2 NX PX 9000"),
		}, Counts{Acquisitions: 2, Tries: 8, Commands: 14, Releases: 1, TriedOnce: 2, Open: 1, AtStart: 1}},
		{"DELIFEQ", [][]string{
			known, one("100 c1 SET k a NX PX 50"), one("110 c1 DELIFEQ k a"), one("111 c1 DELEX k IFEQ a"),
		}, Counts{Acquisitions: 1, Tries: 1, Commands: 6, Releases: 1, IdleRelease: 1, AtStart: 1}},
	} {
		var lines []string
		for _, part := range test.lines {
			lines = append(lines, part...)
		}
		d := observed(t, Options{}, lines...)
		if len(d.Locks) != 1 {
			t.Errorf("%s: %d locks", test.name, len(d.Locks))
			continue
		}
		if diff := cmp.Diff(test.want, d.Locks[0].Counts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestWaitsAndHolds(t *testing.T) {
	t.Parallel()
	d := observed(t, Options{}, append(known[:3:3],
		"100 c1 SET k a NX PX 5000", "110 c2 SET k b NX PX 5000", "140 c2 SET k b NX PX 5000", "145 c3 SET k c NX "+
			"PX 5000",
		"150 c1 EVALSHA rel 1 k a", "150 > GET k", "150 > DEL k", "170 c2 SET k b NX PX 5000", "300 c4 PING")...)
	l := d.Locks[0]
	near := func(name string, got int64, ms float64) {
		if off := float64(got)/1e6/ms - 1; off < -0.005 || off > 0.005 {
			t.Errorf("%s is %d ns, want %v ms", name, got, ms)
		}
	}
	near("hold", l.Hold.Max.NS, 130) // open at the end of the capture
	near("hold p50", l.Hold.P50.NS, 50)
	near("wait", l.Wait.Max.NS, 155)
	near("gap", l.Gap.Max.NS, 20)
	if l.Wait.Count != 2 || l.Wait.Censored != 1 || l.Hold.Censored != 1 || !l.Wait.P99.AtLeast {
		t.Errorf("waits %+v, holds %+v", l.Wait, l.Hold)
	}
}

func TestCachesAreNotLocks(t *testing.T) {
	t.Parallel()
	var lines []string
	for i := range 200 { // a cache, markers of finished work, and a semaphore
		lines = append(lines,
			fmt.Sprintf("%d c1 GET cache:%d", i, i%50), fmt.Sprintf("%d c1 SET cache:%d page NX EX 60", i, i%50),
			fmt.Sprintf("%d c2 SET cache:%d page NX EX 60", i, i%50), fmt.Sprintf("%d c1 DEL cache:%d", i, i%25),
			fmt.Sprintf("%d c%d SET seen:%d 1 NX EX 60", i, i, i/2),
			fmt.Sprintf("%d c1 EVALSHA s 1 sem 4", i), fmt.Sprintf("%d > GET sem", i), fmt.Sprintf("%d > SET sem 4 "+
				"NX", i),
			fmt.Sprintf("%d > DECR sem", i))
	}
	d := observed(t, Options{}, lines...)
	if len(d.Locks) > 0 || d.Caches.Keys != 150 || d.Semaphores.Keys != 1 {
		t.Errorf("%d locks, caches %+v, semaphores %+v", len(d.Locks), d.Caches, d.Semaphores)
	}
	if d = observed(t, Options{Prefix: "seen:"}, lines...); len(d.Locks) != 5 || d.Unlisted != 95 {
		t.Errorf("with a prefix %d locks, %d unlisted", len(d.Locks), d.Unlisted)
	}
}

func TestKeysCanBeHidden(t *testing.T) {
	t.Parallel()
	d := observed(t, Options{HashKeys: true}, append(known, "100 c1 SET k a NX PX 5000")...)
	if name := d.Locks[0].Name; !strings.HasPrefix(name, "key-") || name == "k" {
		t.Errorf("the key is shown as %s", name)
	}
	d = observed(t, Options{HashKeys: true}, "100 c1 SETNX lock:secret:undefined a", "110 c1 DEL lock:secret:undefined",
		"120 c1 SET page:secret x NX EX 60")
	var text strings.Builder
	if err := document.WriteJSON(&text, d); err != nil || strings.Contains(text.String(), "secret") {
		t.Errorf("a hidden key is shown: %v %s", err, text.String())
	}
	if faults, _ := faultsOf(d); len(faults) != 3 || d.Caches.Keys != 1 {
		t.Errorf("found %v, caches %+v", faults, d.Caches)
	}
}

// The test reads an endless stream with a context that was already done. Read must end, and must return the figures of
// the commands that it has read.
func TestReadEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	endless := io.MultiReader(strings.NewReader(stream("0 c1 PING")), repeated(stream("1 c1 PING")))
	d, err := Read(ctx, endless, Options{Top: 1})
	if err != nil || !d.Interrupted || d.Capture.Commands == 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

// repeated is a reader that returns its text again and again.
type repeated string

func (r repeated) Read(to []byte) (int, error) { return copy(to, r), nil }

// However many keys and owners a stream has, the stored keys and waiters must stay within their limits, and dropped
// locks must still count.
func TestLimits(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	const locks = mostKeys * 2
	for i := range locks {
		text.WriteString(stream(fmt.Sprintf("%d c1 SET lock:%d a%d NX PX 9", i, i, i),
			fmt.Sprintf("%d c1 EVALSHA rel 1 lock:%d a%d", i+1, i, i), fmt.Sprintf("%d > GET lock:%d", i+1, i),
			fmt.Sprintf("%d > DEL lock:%d", i+1, i)))
	}
	feed := func() (*observer, *scanner) {
		o, s := newObserver(Options{}), newScanner(strings.NewReader(text.String()))
		for l, err := s.next(); err == nil; l, err = s.next() {
			o.take(l)
		}
		o.flush()
		return o, s
	}
	o, s := feed()
	if kept := len(o.keys.all); kept > mostKeys || kept != o.keys.used.Len() {
		t.Errorf("%d keys are followed, in a list of %d", kept, o.keys.used.Len())
	}
	d := o.document(s.counted, Options{Top: 5})
	if d.All.Acquisitions != locks || len(d.Locks)+d.Unlisted != locks {
		t.Errorf("%d leases of %d locks, want %d each", d.All.Acquisitions, len(d.Locks)+d.Unlisted, locks)
	}
	text.Reset()
	text.WriteString(stream("0 c1 SET k holder NX PX 900000000"))
	for i := range mostWaiters + 1000 {
		text.WriteString(stream(fmt.Sprintf("%d c2 SET k w%d NX PX 900000000", i/100, i)))
	}
	if o, _ = feed(); o.waiters > mostWaiters*3/4 || o.waiters < 900 {
		t.Errorf("%d waiters are remembered", o.waiters)
	}
}
