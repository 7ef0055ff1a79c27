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
	// maxConnections is enough for 1,000 clients with as many connections in their pools.
	maxConnections = 2500
	// superuser of our own server, and database.
	superuser, database = "lockbench", "postgres"
	dataDir, freshDir   = "data", "fresh"
)

// errNoProgram says what to do about it.
var errNoProgram = errors.New("there is no PostgreSQL on this machine: apt-get install postgresql, or name the directory of its programs in LOCKBENCH_POSTGRES_SERVER")

// programs are where initdb and postgres are: where LOCKBENCH_POSTGRES_SERVER says, in the
// place of the newest version's package, or on PATH.
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
		dirs, _ := filepath.Glob(pattern) // it is well-formed
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

// release is the version in a package's place.
func release(bin string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(bin)), "pgsql-"))
	return n
}

// unprivileged is who runs it where we are root: PostgreSQL refuses to run as root.
func unprivileged() string {
	for _, name := range []string{"postgres", "nobody"} {
		if _, err := user.Lookup(name); err == nil {
			return name
		}
	}
	return ""
}

// settings are those of a server of our own. Nothing is vacuumed: nothing that lockbench
// does leaves much to be vacuumed, and it would fall into a window. As shipped a commit is on
// the disk before it is confirmed. Advisory locks write nothing, and are the same with any
// durability.
func settings(bind string, port int, durability store.Durability) []string {
	all := []string{
		"listen_addresses=" + bind, "port=" + strconv.Itoa(port), "unix_socket_directories=",
		"max_connections=" + strconv.Itoa(maxConnections), "autovacuum=off",
		"log_min_messages=fatal", // a client that is gone is no news
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

// launching is how one is to be started.
type launching struct {
	store.Options
	runID string
	cpus  []int
}

// start starts one, on a free port of the loopback interface. Nobody gets in without the
// password, which is drawn for it: whoever is its superuser can run programs.
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

// process starts it as a process.
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
			if _, err := os.Stat(filepath.Join(p.Dir(), dataDir)); err == nil { // for another port
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

// initArgs are those of initdb, wherever it runs. md5 is quickest to log in with; the
// password never leaves this machine.
const initArgs = "--username=" + superuser + " --auth=md5 --encoding=UTF8 --locale=C --no-sync --no-instructions"

// initialise makes a directory of data.
func (o *own) initialise(ctx context.Context, p *launch.Process, dir string) error {
	const secret = "password"
	file := filepath.Join(p.Dir(), secret)
	// Nobody but the server's user gets into the directory, and he has to read it.
	if err := os.WriteFile(file, []byte(o.password+"\n"), 0o644); err != nil { //nolint:gosec // see above
		return err
	}
	defer os.Remove(file)
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

// config is how it is reached.
func (o *own) config(addr string) *pgx.ConnConfig {
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable", superuser, o.password, addr, database))
	if err != nil {
		panic(err) // there is nothing in it that could be wrong
	}
	config.ConnectTimeout = connectTimeout
	return config
}

// ready waits until it lets us in, who alone know its password.
func (o *own) ready(ctx context.Context, p launch.Starting) error {
	return launch.Await(ctx, p, lastLine, func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, o.config(p.Addr()))
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
}

// again starts the server that was killed. Backends that it had just forked may have
// outlived it, and hold the memory that it had shared with them for a moment.
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

// refresh makes data as they were at first beside a process's own, so that it need not be
// waited for while the server is down. In a container they are made when it starts.
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

// empty puts fresh data in the place of those of the killed server.
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

// lastLine is what a log says in the end; what PostgreSQL adds as a hint or a detail is left out.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	for _, line := range slices.Backward(lines) {
		if _, text, ok := strings.Cut(line, "FATAL:"); ok {
			return strings.TrimSpace(text)
		}
	}
	return launch.LastLine(log)
}
