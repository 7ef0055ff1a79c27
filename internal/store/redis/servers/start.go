package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// imageVariable names an image in the environment.
const imageVariable = "LOCKBENCH_REDIS_IMAGE"

// start creates the nodes; it does not connect.
func (s *Server) start(ctx context.Context, options Options, wanted Topology) error {
	if !options.Started() {
		launch.Sweep(ctx).Log(options.Logf)
		return s.useAddresses(ctx, options)
	}
	// Every user of this machine reaches the loopback interface.
	options.password = rand.Text()
	s.password = options.password
	fleet := options.fleet(wanted.kind().arrangement)
	fleet.Members = wanted.Servers()
	way, started, err := fleet.Start(ctx, options.asked(options.Address))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	s.redis = results.Redis{Source: way.Source, Image: way.Image, Network: way.Network, Why: way.Why}
	s.topology = wanted
	for _, one := range started {
		n := &node{options: redis.UniversalOptions{Addrs: []string{one.Addr()}, Password: s.password}}
		n.own = &Own{
			Started: one, password: s.password,
			rejoin: func(ctx context.Context) error { return s.rejoin(ctx, n) },
		}
		s.nodes = append(s.nodes, n)
	}
	return nil
}

// asked is what package launch has to know of the options.
func (o Options) asked(address string) store.Options {
	return store.Options{Address: address, Image: o.Image, Logf: o.Logf}
}

// StartOwn starts a Redis with extra arguments: a process, which is faster, or a container if there
// is no redis-server. The caller closes it.
func StartOwn(ctx context.Context, options Options, args ...string) (*Own, error) {
	_, started, err := options.fleet(single{}, args...).Start(ctx, options.asked(Quickest()))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return &Own{Started: started[0], password: options.password}, nil
}

// Quickest returns the Options.Address that starts fastest here: a process, or a container if there
// is no redis-server.
func Quickest() string {
	if _, err := lookProgram(""); err != nil {
		return "container"
	}
	return "process"
}

// known are the programs that may be the server of a run. The first two are those that lockbench looks for:
// Debian's Valkey package has no redis-server.
var known = []string{"redis-server", "valkey-server", "keydb-server", "dragonfly"}

// lookProgram returns the server to start: wanted, which is a program on PATH or a path, else the
// one in LOCKBENCH_REDIS_SERVER, else redis-server or valkey-server.
func lookProgram(wanted string) (string, error) {
	const variable = "LOCKBENCH_REDIS_SERVER"
	who := "--redis process:" + wanted
	if wanted == "" {
		wanted, who = os.Getenv(variable), variable
	}
	if wanted != "" {
		found, err := exec.LookPath(wanted)
		if err != nil {
			return "", fmt.Errorf("%s: %w", who, errors.Join(exec.ErrNotFound, err))
		}
		return found, nil
	}
	for _, program := range known[:2] {
		if found, err := exec.LookPath(program); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no redis-server (%w): apt-get install redis-server, "+
		"give an address with --redis redis://host:port, or start Docker", exec.ErrNotFound)
}

// programIn returns the program to start in an image, by the image's name.
func programIn(image string) string {
	repository, _, _ := strings.Cut(path.Base(image), ":")
	words := strings.FieldsFunc(path.Dir(image)+"/"+repository, func(r rune) bool { return r == '/' || r == '-' })
	for _, name := range []string{"valkey", "keydb"} {
		if slices.Contains(words, name) {
			return name + "-server"
		}
	}
	return known[0]
}

// fleet describes how to start one node. args come after our own settings and override them. An error of the start
// contains the end of Redis's log. Where there is no registry, docker/setup.sh builds an image out of this machine's
// redis-server.
func (o Options) fleet(a arrangement, args ...string) launch.Fleet {
	args = slices.Concat(a.settings(), persistence(o.Durability), args)
	server := launch.Definition{
		Name:  known[0],
		Args:  func(at launch.Location) []string { return o.arguments(at, args) },
		Ready: func(ctx context.Context, s launch.Starting) error { return awaitReady(ctx, s, o.password) },
		Process: launch.Program{Env: o.Env, Empty: func(_ context.Context, p *launch.Process) error {
			var err error
			for _, data := range []string{snapshot, "appendonlydir", "appendonly.aof"} {
				err = errors.Join(err, os.RemoveAll(filepath.Join(p.Dir(), data)))
			}
			return err
		}},
		Container: launch.Container{Inside: 6379, Listens: listens, Empty: emptyData},
	}
	if o.password != "" {
		server.Process.Prepare = func(_ context.Context, p *launch.Process) error {
			_, err := p.File(secrets, secretSettings(o.password))
			return err
		}
		// The file is in the container only, and its Redis may run as any user.
		server.Container.Files = map[string]string{"/" + secrets: secretSettings(o.password)}
	}
	return launch.Fleet{
		Members: 1, Linked: a.linked(), Ports: a.ports,
		Taken:   "Failed listening on port",
		Image:   launch.Image{Variable: imageVariable, Default: "redis:8", Offline: "lockbench-redis:offline"},
		Program: func() (string, error) { return lookProgram(o.Program) },
		Server:  func(int, [][]int) launch.Definition { return server },
	}
}

// arguments returns the settings of every server that lockbench starts, and args. Nothing is written to disk,
// so that no fork or fsync disturbs a window, and many clients may connect. Redis lowers
// maxclients itself if the limit of open files is smaller.
func (o Options) arguments(at launch.Location, args []string) []string {
	all := []string{
		"--bind", at.Bind, "--port", strconv.Itoa(at.Port),
		"--save", "", "--appendonly", "no",
		"--maxclients", "60000", "--tcp-backlog", "4096",
	}
	file := filepath.Join("..", secrets)
	if at.Image != "" {
		all, file = slices.Insert(all, 0, programIn(at.Image)), "/"+secrets
	}
	switch {
	case o.password != "":
		all = append(all, "--include", file)
	case at.Published:
		// Without a password Redis refuses connections from other hosts. Here the port itself
		// prevents them: it is published on the loopback interface only.
		all = append(all, "--protected-mode", "no")
	}
	return append(all, args...)
}

// secrets is the name of the configuration file of a server with a password: other users of the
// machine can read arguments, not the file.
const secrets = "password.conf"

// secretSettings are its lines. A replica sends the password to its primary.
func secretSettings(password string) string {
	return "requirepass " + password + "\nmasterauth " + password + "\n"
}

// persistence returns settings for an append-only file: synced once a second, Redis's default for
// such a file, or before each answer.
func persistence(d store.Durability) []string {
	switch d {
	case store.Usual:
		return []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	case store.Synced:
		return []string{"--appendonly", "yes", "--appendfsync", "always"}
	default:
		return nil
	}
}

// snapshot is the file that SAVE writes in the server's working directory.
const snapshot = "dump.rdb"

// emptySnapshot is a snapshot without data: the magic word with the format's version, the end
// mark, and a checksum of zeros, which means none.
const emptySnapshot = "REDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// emptyData are a snapshot and an append-only file of Redis 7 or later, both empty.
var emptyData = map[string]string{
	snapshot: emptySnapshot,
	"appendonlydir/appendonly.aof.1.base.rdb": emptySnapshot,
	"appendonlydir/appendonly.aof.1.incr.aof": "",
	"appendonlydir/appendonly.aof.manifest": "file appendonly.aof.1.base.rdb seq 1 type b\n" +
		"file appendonly.aof.1.incr.aof seq 1 type i\n",
}

// listens is in the log of a server that is ready.
const listens = "Ready to accept"

// awaitReady waits until the started server answers, and not another server on the same port. If the server
// needs another password, its log decides.
func awaitReady(ctx context.Context, s launch.Starting, password string) error {
	return launch.Await(ctx, s, launch.LastLine, func(ctx context.Context) error {
		return control(s.Addr(), password, func(client *redis.Client) error {
			err := client.Ping(ctx).Err()
			if refused(err) && Refused(err) != "LOADING" && strings.Contains(s.Log(ctx), listens) {
				return nil
			}
			if err != nil {
				return err
			}
			fields, err := readInfo(ctx, client, "server")
			if err == nil && !isOurs(s, fields) {
				return errors.New("another Redis answers at this address")
			}
			return err
		})
	})
}

// isOurs reports whether an INFO is from the started server: a process by its number, another one if it is young
// enough. A server that was there before is older, and two servers cannot listen on one port.
func isOurs(s launch.Starting, fields replies.Info) bool {
	if p, ok := s.(*launch.Process); ok {
		return fields["process_id"] == strconv.Itoa(p.PID())
	}
	age := fields.Integer("uptime_in_seconds")
	return age != nil && time.Duration(*age-1)*time.Second <= time.Since(s.Began())
}
