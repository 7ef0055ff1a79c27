package observe

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLibrariesAreRecognised reads captures of redis-py 8.1, python-redis-lock 4.0, redis-semaphore 5.8, redlock 5 beta
// for Node.js, Redisson 4.7 and ShedLock 7.10. In each capture, eight clients contend for one lock. Read must find the
// lock, its counts and its library.
func TestLibrariesAreRecognised(t *testing.T) {
	t.Parallel()
	const compare = "; compare and delete in a script"
	const polling = "redsync, redis-py, redis-semaphore, python-redis-lock, aioredlock"
	want := map[string]Lock{
		"python-redis-lock.monitor": {
			Name: "lock:order:{7}", Shape: "SET NX" + compare, Libraries: "python-redis-lock",
			Counts: Counts{Acquisitions: 3, Tries: 10, Commands: 35, Releases: 2, IdleRelease: 1, Open: 5},
		},
		"redis-py.monitor": {
			Name: "order:{7}", Shape: "SET NX" + compare, Libraries: polling,
			Counts: Counts{Acquisitions: 9, Tries: 20, Commands: 44, Releases: 8, Open: 6},
		},
		"redis-semaphore.monitor": {
			Name: "mutex:order:{7}", Shape: "SET NX" + compare, Libraries: polling,
			Counts: Counts{Acquisitions: 6, Tries: 40, Commands: 55, Releases: 5, Open: 7},
		},
		"redlock.monitor": {
			Name: "order:{7}", Shape: "EXISTS and SET in a script" + compare, Libraries: "redlock (Node.js)",
			Counts: Counts{Acquisitions: 7, Tries: 11, Commands: 56, Releases: 7, Open: 4},
		},
		"redisson.monitor": {
			Name: "order:{7}", Shape: "HINCRBY and PEXPIRE in a script; HINCRBY −1 and DEL in a script",
			Libraries: "Redisson and locks that can be entered again",
			Counts:    Counts{Acquisitions: 8, Tries: 35, Commands: 198, Releases: 7, Open: 6},
		},
		"redisson-fair.monitor": {
			Name: "order:{7}", Shape: "HSET and PEXPIRE in a script; HINCRBY −1 and DEL in a script",
			Libraries: "Redisson's fair lock",
			Counts:    Counts{Acquisitions: 6, Tries: 18, Commands: 265, Releases: 5, Open: 3, AtStart: 1},
		},
		"shedlock.monitor": {
			Name: "shedlock:default:order:{7}", Shape: "SET NX; DEL", Libraries: "ShedLock and locks made by hand",
			Counts: Counts{Acquisitions: 18, Tries: 23, Commands: 40, Releases: 17, UnsafeReleases: 17, Open: 5},
		},
	}
	files, err := filepath.Glob("testdata/*.monitor")
	if err != nil || len(files) != len(want) {
		t.Fatalf("%d captures, want %d: %v", len(files), len(want), err)
	}
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := Read(t.Context(), in, Options{Top: 5})
		if _ = in.Close(); err != nil {
			t.Fatal(err)
		}
		if len(d.Locks) != 1 || d.Caches.Keys > 0 {
			t.Errorf("%s: %d locks, and aside %+v", file, len(d.Locks), d.Caches)
		}
		for _, l := range slices.Clip(d.Locks) {
			seen := Lock{Name: l.Name, Shape: l.Shape, Libraries: l.Libraries, Counts: l.Counts}
			if diff := cmp.Diff(want[filepath.Base(file)], seen); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}
