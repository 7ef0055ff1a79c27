package postgres

import (
	"errors"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// What is written is counted, an advisory lock writes nothing. (Others must not write meanwhile.)
func TestWhatIsWrittenIsCounted(t *testing.T) {
	s := common(t)
	wal := func(sql string) int64 {
		t.Helper()
		before, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		after, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return *after.Since(before, 1).WALBytes
	}
	const rows, row = 1000, 100
	least := int64(rows * row)
	if n := wal("CREATE TABLE written AS SELECT repeat('x', 100) FROM generate_series(1, 1000)"); n < least {
		t.Errorf("%d rows of %d bytes added %d bytes to the log", rows, row, n)
	}
	if n := wal("SELECT pg_advisory_lock(7), pg_advisory_unlock(7)"); n >= least {
		t.Errorf("an advisory lock added %d bytes to the log", n)
	}
	if n := wal("DROP TABLE written"); n == 0 {
		t.Error("what drops a table was not counted")
	}
}

// The counters go on over a kill, at which the server's own begin again, with and without its data.
func TestCountersGoOnOverARestart(t *testing.T) {
	t.Parallel()
	s := opened(t, "restarts", store.Options{Address: "process"})
	if _, err := s.exec(t.Context(), "CREATE TABLE written AS SELECT repeat('x', 100) FROM generate_series(1, 100000)"); err != nil {
		t.Fatal(err)
	}
	last, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"kill:at=0s,for=1s,data=keep", "kill:at=0s,for=1s"} {
		f, err := workloads.ParseFault(text)
		if err != nil {
			t.Fatal(err)
		}
		action, err := s.Faults(nil).Prepare(t.Context(), f, store.RunMarks{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(action.Hit(t.Context()), action.End(t.Context()), s.Settle(t.Context())); err != nil {
			t.Fatal(err)
		}
		now, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if now.WALBytes == nil || *now.WALBytes < *last.WALBytes || now.CPU == nil || *now.CPU < *last.CPU {
			t.Errorf("%s: from %d bytes and %v s of CPU to %v and %v", text, *last.WALBytes, *last.CPU, now.WALBytes, now.CPU)
		} else if grown := *now.WALBytes - *last.WALBytes; grown > 5_000_000 {
			t.Errorf("%s: it wrote %d bytes, and nothing was asked of it", text, grown)
		}
		last = now
	}
}
