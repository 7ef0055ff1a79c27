package postgres

import "testing"

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
