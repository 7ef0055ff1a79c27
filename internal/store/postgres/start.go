package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

const (
	// maxConnections is enough for 1,000 clients that each use a second connection from a pool.
	maxConnections = 2500
	// These are the superuser and the database of a server that lockbench starts.
	superuser, database = "lockbench", "postgres"
	dataDir, freshDir   = "data", "fresh"
)

// errNoProgram reports that PostgreSQL is not installed. It says how to install PostgreSQL, and how to name an
// installation that is not on PATH.
var errNoProgram = errors.New("PostgreSQL is not installed on this machine: apt-get install postgresql, " +
	"or name the directory of its programs in LOCKBENCH_POSTGRES_SERVER")

// programs returns the directory of initdb and postgres: the one in LOCKBENCH_POSTGRES_SERVER, or else that of the
// newest Debian or Red Hat package, or else the one on PATH.
func programs() (string, error) {
	if named := os.Getenv("LOCKBENCH_POSTGRES_SERVER"); named != "" {
		if _, err := exec.LookPath(filepath.Join(named, "initdb")); err != nil {
			return "", fmt.Errorf("LOCKBENCH_POSTGRES_SERVER names %s, which does not contain initdb", named)
		}
		return named, nil
	}
	for _, packages := range []string{"/usr/lib/postgresql/[1-9][0-9]/bin/initdb", "/usr/pgsql-[1-9][0-9]/bin/initdb"} {
		if found, _ := filepath.Glob(packages); len(found) > 0 { // the patterns are valid
			return filepath.Dir(slices.Max(found)), nil
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", errNoProgram
	}
	return filepath.Dir(path), nil
}

// unprivileged returns the user that runs the server if lockbench runs as root, because PostgreSQL refuses to run as
// root.
func unprivileged() string {
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	return ""
}

// settings returns the settings of a server that lockbench starts. Autovacuum is off, because there is little to vacuum
// and vacuuming would disturb the measured window. By default a commit is synced to disk before it is confirmed.
// Advisory locks write nothing, so durability does not affect them.
func settings(port int, durability store.Durability) []string {
	all := []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(port), "unix_socket_directories=",
		"max_connections=" + strconv.Itoa(maxConnections), "autovacuum=off",
		"log_min_messages=fatal", // do not log lost clients
	}
	if durability == store.InMemory {
		all = append(all, "fsync=off", "synchronous_commit=off")
	}
	args := []string{"-D", dataDir}
	for _, setting := range all {
		args = append(args, "-c", setting)
	}
	return args
}

// start starts a server on a free port of the loopback interface. Access requires a random password, because every
// client logs in as a superuser, and a superuser can run programs on this machine.
func (s *server) start(ctx context.Context, o store.Options) (err error) {
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails, by its documentation
	s.password = hex.EncodeToString(secret)
	err = s.Start(ctx, launch.Fleet{
		Members: 1, Ports: launch.FreePorts(1),
		Taken: "could not create any TCP/IP sockets", // see lastLine
		Program: func() (_ string, err error) {
			s.bin, err = programs()
			return filepath.Join(s.bin, "postgres"), err
		},
		Server: func(int, [][]int) launch.Definition {
			return launch.Definition{
				Name: "postgres", Ready: s.ready,
				Args: func(at launch.Location) []string { return settings(at.Port, o.Durability) },
				Process: launch.Program{
					User: unprivileged(),
					Prepare: func(ctx context.Context, p *launch.Process) error {
						return s.initialise(ctx, p, dataDir)
					},
					Empty: s.empty,
				},
			}
		},
	}, o)
	if err == nil {
		s.config = s.ownConfig(s.Own[0].Addr())
	}
	return err
}

// initArgs are the arguments of initdb. The login uses md5, because it is the fastest method that checks a password,
// and the password never leaves this machine.
const initArgs = "--username=" + superuser + " --auth=md5 --encoding=UTF8 --locale=C --no-sync --no-instructions"

// initialise creates a data directory with initdb. If initdb fails, the returned error contains the last error that
// initdb printed.
func (s *server) initialise(ctx context.Context, p *launch.Process, dir string) error {
	secret, err := p.File("password", s.password+"\n")
	if err != nil {
		return err
	}
	defer os.Remove(secret)
	args := append(strings.Fields(initArgs), "-D", dir, "--pwfile="+secret)
	cmd, err := p.Command(filepath.Join(s.bin, "initdb"), args...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, launch.StartTimeout)
	defer cancel()
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("initdb: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("initdb: %w (%s)", errors.Join(err, ctx.Err()), lastLine(said.String()))
	}
	return nil
}

// ownConfig returns the connection options, including the random password, for a server that lockbench started.
func (s *server) ownConfig(addr string) *pgx.ConnConfig {
	url := fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", superuser, s.password, addr, database)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		panic(err) // the text is always valid
	}
	config.ConnectTimeout = connectTimeout
	return config
}

// ready waits until a login with the random password succeeds. The login proves that lockbench started this server.
func (s *server) ready(ctx context.Context, p launch.Starting) error {
	return launch.Await(ctx, p, lastLine, func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, s.ownConfig(p.Addr()))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// again starts the killed server. Backends that the server forked just before the kill may still use the server's
// shared memory for a moment, so again retries until that memory is free.
func (s *server) again(ctx context.Context, lose bool) error {
	start := s.Own[0].Again
	if lose {
		start = s.Own[0].Anew
	}
	for end := time.Now().Add(launch.StartTimeout); ; time.Sleep(50 * time.Millisecond) {
		err := start(ctx)
		start = s.Own[0].Again
		over := err == nil || time.Now().After(end) || ctx.Err() != nil
		if over || !strings.Contains(err.Error(), "shared memory block") {
			return err
		}
	}
}

// refresh prepares an empty data directory next to the server's data directory, so that initdb does not prolong the
// time for which the server is down.
func (s *server) refresh(ctx context.Context, p *launch.Process) error {
	if _, err := os.Stat(filepath.Join(p.Dir(), freshDir)); err == nil {
		return nil
	}
	return s.initialise(ctx, p, freshDir)
}

// empty replaces the data directory of the killed server with the empty directory that refresh has prepared.
func (s *server) empty(ctx context.Context, p *launch.Process) error {
	if err := s.refresh(ctx, p); err != nil {
		return err
	}
	data := filepath.Join(p.Dir(), dataDir)
	if err := os.RemoveAll(data); err != nil {
		return err
	}
	return os.Rename(filepath.Join(p.Dir(), freshDir), data)
}

// lastLine returns the log's last error, without PostgreSQL's hints and details.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if _, text, ok := strings.Cut(line, "FATAL:"); ok {
			return strings.TrimSpace(text)
		}
	}
	return launch.LastLine(log)
}
