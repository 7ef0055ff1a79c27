package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/workloads"
)

// TestOpenErrors opens servers that refuse access or do not exist. Open must quickly return an error that names the
// reason and contains no password.
func TestOpenErrors(t *testing.T) {
	t.Parallel()
	s := common(t)
	with := func(old, other string) string { return strings.Replace(s.url(), old, other, 1) }
	for name, test := range map[string]struct {
		address string
		is      error
		says    string
	}{
		"wrong password": {with(s.password, "geheim"), store.ErrConfig, "user or password is wrong"},
		"no such user":   {with(superuser+":", "nobody:"), store.ErrConfig, "user or password is wrong"},
		"no database":    {with("/postgres?", "/nothing?"), store.ErrConfig, "there is no such database"},
		"no TLS":         {with("sslmode=disable", "sslmode=require"), store.ErrConfig, "uses no TLS"},
		"nothing there":  {"postgres://me:geheim@127.0.0.1:1/x", store.ErrUnreachable, "refused"},
		"another scheme": {"redis://me:geheim@127.0.0.1:1", store.ErrConfig, "must be postgres://"},
		"cut password":   {"postgres://me:gehe/im@127.0.0.1:1/x", store.ErrConfig, "percent-encode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for its timeout
			ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
			defer cancel()
			s, err := Store().Open(ctx, "x", store.Options{Address: test.address})
			if err == nil {
				_ = s.Close(t.Context())
				t.Fatal("it was opened")
			}
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) ||
				strings.Contains(err.Error(), "gehe") || strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
			if ctx.Err() != nil {
				t.Error("it waited for as long as it might")
			}
		})
	}
}

func TestNoPrograms(t *testing.T) {
	t.Setenv("LOCKBENCH_POSTGRES_SERVER", t.TempDir())
	_, err := Store().Open(t.Context(), "x", store.Options{})
	if !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "LOCKBENCH_POSTGRES_SERVER") {
		t.Error(err)
	}
	if !strings.Contains(errNoProgram.Error(), "apt-get install postgresql") {
		t.Error(errNoProgram)
	}
}

func TestDurabilityAndLimits(t *testing.T) {
	t.Parallel()
	s := opened(t, store.Options{Durability: store.InMemory})
	if durability := s.Describe().Durability; durability != "memory" {
		t.Errorf("it says %q", durability)
	}
	limits, err := s.Limits(t.Context())
	if err != nil || limits.MaxClients < 2000 || limits.Connected < 1 {
		t.Errorf("%+v, %v", limits, err)
	}
	times, err := s.RoundTrips(t.Context(), "lockbench:x:floor")
	if err != nil || times.PingP50 == nil || *times.PingP50 <= 0 || times.ScriptP99 == nil {
		t.Errorf("%+v, %v", times, err)
	}
}

// TestFaults creates a table and kills the server three times. The table must survive a restart with data=keep, and
// must be gone after one with data=lose.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := opened(t, store.Options{})
	if err := s.exec(t.Context(), "CREATE TABLE kept (n int)"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		data workloads.Data
		kept bool
	}{{workloads.DataKeep, true}, {workloads.DataLose, false}, {workloads.DataLose, false}} {
		fault := workloads.Fault{Name: workloads.Kill, Data: test.data}
		kill, err := s.Faults(nil).Prepare(t.Context(), fault, store.RunMarks{})
		if err != nil {
			t.Fatal(err)
		}
		if err := kill.Hit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := kill.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		var kept bool
		err = s.query(t.Context(), func(row pgx.Row) error { return row.Scan(&kept) },
			"SELECT to_regclass('kept') IS NOT NULL")
		if err != nil || kept != test.kept {
			t.Errorf("data=%s: the table is there: %v, %v", test.data, kept, err)
		}
	}
}
