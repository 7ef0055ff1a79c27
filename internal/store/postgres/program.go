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
	// Superuser and database of a server that lockbench starts.
	superuser, database = "lockbench", "postgres"
	dataDir, freshDir   = "data", "fresh"
)

// errNoProgram includes advice.
var errNoProgram = errors.New("there is no PostgreSQL on this machine: apt-get install postgresql, or name the directory of its programs in LOCKBENCH_POSTGRES_SERVER")

// programs returns the directory of initdb and postgres: that of LOCKBENCH_POSTGRES_SERVER, that of the
// newest installed package, or the one on PATH.
func programs() (string, error) {
	if named := os.Getenv("LOCKBENCH_POSTGRES_SERVER"); named != "" {
		if stat, err := os.Stat(named); err == nil && !stat.IsDir() {
			named = filepath.Dir(named)
		}
		if !hasPrograms(named) {
			return "", fmt.Errorf("LOCKBENCH_POSTGRES_SERVER names %s, where initdb and postgres are not", named)
		}
		return named, nil
	}
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"} { // Debian's, and Red Hat's
		dirs, _ := filepath.Glob(pattern) // the pattern is valid
		found = append(found, slices.DeleteFunc(dirs, func(dir string) bool { return !hasPrograms(dir) })...)
	}
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
	for _, program := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
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

// own is a PostgreSQL that lockbench started.
type own struct {
	launch.Started
	bin, password string
}

// launching says how to start a server.
type launching struct {
	store.Options
	runID string
	cpus  []int
}

// start starts a server on a free port of the loopback interface. Access needs a random password, because
// a superuser can run programs.
func start(ctx context.Context, at launching) (*own, launch.Way, error) {
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails, by its documentation
	o := &own{password: hex.EncodeToString(secret)}
	way, err := launch.Ways{
		Asked: at.Address, Image: image(at.Options), Logf: at.Logf,
		InContainers: func(ctx context.Context, engine launch.Engine, image string) (string, error) {
			if err := o.contain(ctx, engine, image, at); err != nil {
				return "", err
			}
			return o.Network(), nil
		},
		AsProcesses: func(ctx context.Context) error { return o.process(ctx, at) },
	}.Start(ctx)
	if err != nil {
		return nil, way, fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	return o, way, nil
}

// process starts the server as a process.
func (o *own) process(ctx context.Context, at launching) error {
	bin, err := programs()
	if err != nil {
		return err
	}
	o.bin = bin
	p, err := launch.Start(ctx, launch.Program{
		Name: "postgres", Path: filepath.Join(bin, "postgres"), CPUs: at.cpus, User: unprivileged(),
		Args: func(p *launch.Process) []string {
			return settings("127.0.0.1", p.Port(), at.Durability)
		},
		Prepare: func(ctx context.Context, p *launch.Process) error {
			if _, err := os.Stat(filepath.Join(p.Dir(), dataDir)); err == nil { // it was created for an earlier port
				return nil
			}
			return o.initialise(ctx, p, dataDir)
		},
		Empty: o.empty,
		Ready: func(ctx context.Context, p *launch.Process) error { return o.ready(ctx, p) },
		Taken: taken,
	}, launch.FreePort, at.runID)
	if err != nil {
		return err
	}
	o.Started = p
	return nil
}

// initArgs are the arguments of initdb for processes and containers. md5 is the fastest login; the
// password never leaves this machine.
const initArgs = "--username=" + superuser + " --auth=md5 --encoding=UTF8 --locale=C --no-sync --no-instructions"

// initialise creates a data directory.
func (o *own) initialise(ctx context.Context, p *launch.Process, dir string) error {
	secret, err := p.File("password", o.password+"\n")
	if err != nil {
		return err
	}
	defer os.Remove(secret)
	cmd, err := p.Command(filepath.Join(o.bin, "initdb"), append(strings.Fields(initArgs), "-D", dir, "--pwfile="+secret)...)
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

// config returns the connection options for the server.
func (o *own) config(addr string) *pgx.ConnConfig {
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", superuser, o.password, addr, database))
	if err != nil {
		panic(err) // the text is always valid
	}
	config.ConnectTimeout = connectTimeout
	return config
}

// ready waits until a login with the password works, so that it is our server.
func (o *own) ready(ctx context.Context, p launch.Starting) error {
	return launch.Await(ctx, p, lastLine, func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, o.config(p.Addr()))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// again starts the killed server. Backends that it had just forked may still run, and keep its shared
// memory for a moment.
func (o *own) again(ctx context.Context, lose bool) error {
	start := o.Again
	if lose {
		start = o.Anew
	}
	for end := time.Now().Add(launch.StartTimeout); ; time.Sleep(50 * time.Millisecond) {
		err := start(ctx)
		start = o.Again
		if err == nil || !strings.Contains(err.Error(), "shared memory block") || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// refresh prepares a fresh data directory next to a process's own, so that this takes no time while the
// server is down. A container creates it at its start.
func (o *own) refresh(ctx context.Context) error {
	p, ok := o.Started.(*launch.Process)
	if !ok {
		return nil
	}
	if _, err := os.Stat(filepath.Join(p.Dir(), freshDir)); err == nil {
		return nil
	}
	return o.initialise(ctx, p, freshDir)
}

// empty replaces the data of the killed server by the fresh data.
func (o *own) empty(ctx context.Context, p *launch.Process) error {
	if err := o.refresh(ctx); err != nil {
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
