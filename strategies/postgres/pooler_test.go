package postgres_test

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies/postgres"
)

// allowed lists the settings of the lock's connections that PgBouncer must be configured to ignore. PgBouncer refuses a
// connection with any other setting that it does not know.
const allowed = "tcp_keepalives_idle,tcp_keepalives_interval,tcp_keepalives_count,tcp_user_timeout," +
	"client_connection_check_interval,statement_timeout,lock_timeout,idle_session_timeout,extra_float_digits"

// pooled starts a PgBouncer in front of the server, and returns the configuration of connections through it.
func pooled(t *testing.T, at *pgx.ConnConfig, settings string) *pgx.ConnConfig {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	_ = free.Close()
	dir, err := os.MkdirTemp("", "pooler")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s port=%d user=%s password=%s dbname=%s\n[pgbouncer]\n"+
		"listen_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n%s\n",
		at.Host, at.Port, at.User, at.Password, at.Database, port, settings)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program, _ := exec.LookPath("pgbouncer")
	cmd := exec.Command(cmp.Or(program, "/usr/sbin/pgbouncer"), config)
	if os.Geteuid() == 0 { // as which it refuses to run
		account, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.ParseUint(account.Uid, 10, 32) // they are numbers
		gid, _ := strconv.ParseUint(account.Gid, 10, 32)
		for _, file := range []string{dir, config} {
			if err := os.Chown(file, int(uid), int(gid)); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatalf("PgBouncer is needed, a package of Debian: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	poll.Until(t, "PgBouncer answers", func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	at = at.Copy()
	at.Host, at.Port, at.Fallbacks = "127.0.0.1", uint16(port), nil
	at.DialFunc = (&net.Dialer{}).DialContext
	return at
}

// Behind a PgBouncer in any mode, Prepare and the first Acquire must return an error that names PgBouncer, and no
// advisory lock may be left.
func TestPoolers(t *testing.T) {
	ignore := "ignore_startup_parameters = " + allowed + "\n"
	for name, settings := range map[string]string{
		"transaction mode": ignore + "pool_mode = transaction",
		"one backend":      ignore + "pool_mode = transaction\ndefault_pool_size = 1",
		"statement mode":   ignore + "pool_mode = statement",
		"session mode":     ignore + "pool_mode = session",
		"settings refused": "pool_mode = session",
	} {
		t.Run(name, func(t *testing.T) {
			at, _ := node(t, shared.Get(t))
			at = pooled(t, at, settings)
			for mode, execute := range map[string]pgx.QueryExecMode{
				"extended": pgx.QueryExecModeCacheStatement, "simple": pgx.QueryExecModeSimpleProtocol,
			} {
				at.DefaultQueryExecMode = execute
				locker := openAt(t, at)
				if lease, err := locker.Acquire(t.Context(), "key"); err == nil {
					t.Errorf("%s: the acquire was granted", mode)
					release(t, lease)
				} else if !strings.Contains(err.Error(), "PgBouncer") {
					t.Errorf("%s: the acquire returned %v", mode, err)
				}
				prepared, err := postgres.Open(postgres.Config{
					Nodes: []*pgx.ConnConfig{at}, TTL: time.Minute, Callers: 2,
				}, postgres.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if err := prepared.Prepare(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "PgBouncer") {
					t.Errorf("%s: Prepare returned %v", mode, err)
				}
				if err := prepared.Close(); err != nil {
					t.Error(err)
				}
			}
			const locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
			if left := number(t, inspectingConnection(t, shared.Get(t)), locks); left > 0 {
				t.Errorf("%d locks are left at the server", left)
			}
		})
	}
}
