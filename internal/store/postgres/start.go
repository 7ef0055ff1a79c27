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
	"github.com/lockbench/lockbench/internal/store/ensemble"
)

const (
	// maxConnections is enough for 1,000 clients that each use a second connection from a pool.
	maxConnections = 2500
	// Superuser and database of a server that lockbench starts.
	superuser, database = "lockbench", "postgres"
	dataDir, freshDir   = "data", "fresh"
)

// errNoProgram includes advice.
var errNoProgram = errors.New("there is no PostgreSQL on this machine: apt-get install postgresql, " +
	"or name the directory of its programs in LOCKBENCH_POSTGRES_SERVER")

// programs returns the directory of initdb and postgres: that of LOCKBENCH_POSTGRES_SERVER, else that of the newest
// package of Debian or Red Hat, or the one on PATH.
func programs() (string, error) {
	if named := os.Getenv("LOCKBENCH_POSTGRES_SERVER"); named != "" {
		if !hasPrograms(named) {
			return "", fmt.Errorf("LOCKBENCH_POSTGRES_SERVER names %s, where initdb and postgres are not", named)
		}
		return named, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the patterns are valid
	others, _ := filepath.Glob("/usr/pgsql-*/bin")
	found = slices.DeleteFunc(append(found, others...), func(dir string) bool { return !hasPrograms(dir) })
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return release(a) - release(b) }), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil || !hasPrograms(filepath.Dir(path)) {
		return "", errNoProgram
	}
	return filepath.Dir(path), nil
}

func hasPrograms(dir string) bool {
	_, initdb := exec.LookPath(filepath.Join(dir, "initdb"))
	_, postgres := exec.LookPath(filepath.Join(dir, "postgres"))
	return initdb == nil && postgres == nil
}

// release returns the version in a package's path.
func release(bin string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(bin)), "pgsql-"))
	return n
}

// unprivileged returns the user that runs the server if we are root: PostgreSQL refuses to run as root.
func unprivileged() string {
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	return ""
}

// settings returns the settings of a server that lockbench starts. Autovacuum is off: there is little
// to vacuum, and it would disturb a window. By default a commit is on the disk before it is
// confirmed. Advisory locks write nothing, so durability does not affect them.
func settings(bind string, port int, durability store.Durability) []string {
	all := []string{
		"listen_addresses=" + bind, "port=" + strconv.Itoa(port), "unix_socket_directories=",
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

// script creates a data directory the first time, and then executes the server with the script's
// arguments. It uses only the shell's built-in commands.
const script = `cd /tmp || exit
if [ ! -e ` + dataDir + `/PG_VERSION ]; then
	umask 077
	printf '%s\n' "$` + secretEnv + `" >password
	initdb ` + initArgs + ` --pwfile=password -D ` + dataDir + ` || exit
	: >password
fi
exec postgres "$@"`

const secretEnv = "LOCKBENCH_SECRET"

// start starts a server on a free port of the loopback interface. Access needs a random password, because a superuser
// can run programs.
func (s *server) start(ctx context.Context, o store.Options) (err error) {
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails, by its documentation
	s.password = hex.EncodeToString(secret)
	s.about, err = s.Start(ctx, ensemble.Fleet{
		Members: 1, Ports: 1,
		Image: launch.Image{Variable: "LOCKBENCH_POSTGRES_IMAGE", Default: "postgres:17"},
		Taken: func(err error) bool { return strings.Contains(err.Error(), "Address already in use") },
		Program: func() (_ string, err error) {
			s.bin, err = programs()
			return filepath.Join(s.bin, "postgres"), err
		},
		Server: func(ensemble.Place) launch.Server { return s.launching(o) },
	}, o, s.runID)
	if err == nil {
		s.config = s.ownConfig(s.Own[0].Addr())
	}
	return err
}

// launching says how to start it.
func (s *server) launching(o store.Options) launch.Server {
	prepare := func(ctx context.Context, p *launch.Process) error {
		if _, err := os.Stat(filepath.Join(p.Dir(), dataDir)); err == nil { // it was created for an earlier port
			return nil
		}
		return s.initialise(ctx, p, dataDir)
	}
	return launch.Server{
		Name: "postgres", Ready: s.ready,
		Args:    func(in launch.Place) []string { return settings(in.Bind, in.Port, o.Durability) },
		Process: launch.Program{User: unprivileged(), Prepare: prepare, Empty: s.empty},
		Container: launch.Container{
			Inside: 5432, User: "postgres", // it refuses to run as root
			Env: map[string]string{secretEnv: s.password}, Entrypoint: []string{"sh", "-c", script, "postgres"},
		},
	}
}

// initArgs are the arguments of initdb for processes and containers. md5 is the fastest login; the
// password never leaves this machine.
const initArgs = "--username=" + superuser + " --auth=md5 --encoding=UTF8 --locale=C --no-sync --no-instructions"

// initialise creates a data directory.
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

// ownConfig returns the connection options for a server that lockbench started.
func (s *server) ownConfig(addr string) *pgx.ConnConfig {
	url := fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", superuser, s.password, addr, database)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		panic(err) // the text is always valid
	}
	config.ConnectTimeout = connectTimeout
	return config
}

// ready waits until a login with the password works, so that it is our server.
func (s *server) ready(ctx context.Context, p launch.Starting) error {
	return launch.Await(ctx, p, lastLine, func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, s.ownConfig(p.Addr()))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// again starts the killed server. Backends that it had just forked may still run, and keep its shared
// memory for a moment.
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

// refresh prepares a fresh data directory next to a process's own, so that this takes no time while the
// server is down. A container creates it at its start.
func (s *server) refresh(ctx context.Context) error {
	p, ok := s.Own[0].(*launch.Process)
	if !ok {
		return nil
	}
	if _, err := os.Stat(filepath.Join(p.Dir(), freshDir)); err == nil {
		return nil
	}
	return s.initialise(ctx, p, freshDir)
}

// empty replaces the data of the killed server by the fresh data.
func (s *server) empty(ctx context.Context, p *launch.Process) error {
	if err := s.refresh(ctx); err != nil {
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
