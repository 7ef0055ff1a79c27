// Package redisserver starts Redis servers on this machine and controls them. It imports no package of the benchmark,
// so that a module whose lock is tested with package locktest needs few other modules.
package redisserver

import (
	"context"
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
)

// Options describes the program or image, the environment and the password of a Redis to start. All fields may be
// empty.
type Options struct {
	// Program is the server program to run as a process, as a path or a name on PATH; "" means this machine's default.
	Program string
	// Image is the image to run in a container; "" means the one in LOCKBENCH_REDIS_IMAGE, or else the best available one.
	Image string
	// Env adds variables, such as NAME=value, to the environment of a redis-server process. It has no
	// effect in containers.
	Env      []string
	Password string // "" means none
	// Logf reports slow steps, such as the pull of an image; nil means no reports.
	Logf func(format string, args ...any)
}

// imageVariable is the environment variable that can name an image.
const imageVariable = "LOCKBENCH_REDIS_IMAGE"

// Start starts a Redis with extra arguments: as a process, which is faster, or in a container if there is no
// redis-server. The caller must close the Redis.
func Start(ctx context.Context, options Options, args ...string) (*Own, error) {
	all, err := start(ctx, options, options.Fleet(args...))
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// start starts the servers of a fleet as processes or in containers, whichever Quickest returns.
func start(ctx context.Context, o Options, fleet launch.Fleet) (all []*Own, err error) {
	_, started, err := fleet.Start(ctx, launch.Request{Address: Quickest(), Image: o.Image, Logf: o.Logf})
	if err != nil {
		return nil, err
	}
	for _, one := range started {
		all = append(all, &Own{Started: one, Password: o.Password})
	}
	return all, nil
}

// Quickest returns the value of launch.Request.Address with which Redis starts fastest on this machine: process, or
// container if there is no redis-server.
func Quickest() string {
	if _, err := LookProgram(""); err != nil {
		return "container"
	}
	return "process"
}

// Programs lists the names by which lockbench recognises the process of a Redis server. To start a server, lockbench
// looks for the first two, because Debian's Valkey package has no redis-server.
var Programs = []string{"redis-server", "valkey-server", "keydb-server", "dragonfly"}

// LookProgram returns the server program to start: wanted, which is a path or a name on PATH, or else the one in
// LOCKBENCH_REDIS_SERVER, or else redis-server or valkey-server.
func LookProgram(wanted string) (string, error) {
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
	for _, program := range Programs[:2] {
		if found, err := exec.LookPath(program); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("redis-server was not found (%w): apt-get install redis-server, "+
		"give an address with --redis redis://host:port, or start Docker", exec.ErrNotFound)
}

// programIn derives the name of the server program in an image from the name of the image.
func programIn(image string) string {
	repository, _, _ := strings.Cut(path.Base(image), ":")
	words := strings.FieldsFunc(path.Dir(image)+"/"+repository, func(r rune) bool { return r == '/' || r == '-' })
	for _, name := range []string{"valkey", "keydb"} {
		if slices.Contains(words, name) {
			return name + "-server"
		}
	}
	return Programs[0]
}

// Fleet describes how to start one server. args follow the settings of every server and override them. The error of a
// failed start contains the last line of Redis's log. For machines without access to a registry, docker/setup.sh builds
// an image from this machine's redis-server.
func (o Options) Fleet(args ...string) launch.Fleet {
	server := launch.Definition{
		Name:  Programs[0],
		Args:  func(at launch.Location) []string { return o.arguments(at, args) },
		Ready: func(ctx context.Context, s launch.Starting) error { return awaitReady(ctx, s, o.Password) },
		Process: launch.Program{Env: o.Env, Empty: func(_ context.Context, p *launch.Process) error {
			var err error
			for _, data := range []string{snapshot, "appendonlydir", "appendonly.aof"} {
				err = errors.Join(err, os.RemoveAll(filepath.Join(p.Dir(), data)))
			}
			return err
		}},
		Container: launch.Container{Inside: 6379, Listens: listens, Empty: emptyData},
	}
	if o.Password != "" {
		server.Process.Prepare = func(_ context.Context, p *launch.Process) error {
			_, err := p.File(Secrets, secretSettings(o.Password))
			return err
		}
		// The file exists only in the container, where Redis may run as any user.
		server.Container.Files = map[string]string{"/" + Secrets: secretSettings(o.Password)}
	}
	return launch.Fleet{
		Members: 1, Ports: launch.FreePorts(1),
		Taken:   "Failed listening on port",
		Image:   launch.Image{Variable: imageVariable, Default: "redis:8", Offline: "lockbench-redis:offline"},
		Program: func() (string, error) { return LookProgram(o.Program) },
		Server:  func(int, [][]int) launch.Definition { return server },
	}
}

// arguments returns the settings of every server that lockbench starts, followed by args. They turn off writes to disk,
// so that no fork or fsync disturbs a window. They set a high maxclients, which Redis itself lowers if the limit of
// open files is smaller.
func (o Options) arguments(at launch.Location, args []string) []string {
	all := []string{
		"--bind", at.Bind, "--port", strconv.Itoa(at.Port),
		"--save", "", "--appendonly", "no",
		"--maxclients", "60000", "--tcp-backlog", "4096",
	}
	file := filepath.Join("..", Secrets)
	if at.Image != "" {
		all, file = slices.Insert(all, 0, programIn(at.Image)), "/"+Secrets
	}
	switch {
	case o.Password != "":
		all = append(all, "--include", file)
	case at.Published:
		// Without a password Redis refuses connections from other hosts. Here the port is published only on the loopback
		// interface, which prevents such connections.
		all = append(all, "--protected-mode", "no")
	}
	return append(all, args...)
}

// Secrets is the name of the configuration file that holds a server's password. Other users of the machine can read a
// process's arguments, but not this file.
const Secrets = "password.conf"

// secretSettings returns the lines of the file Secrets. A replica sends the password to its primary.
func secretSettings(password string) string {
	return "requirepass " + password + "\nmasterauth " + password + "\n"
}

// snapshot is the file that SAVE writes in the server's working directory.
const snapshot = "dump.rdb"

// emptySnapshot is a snapshot without data: the magic word with the format's version, the end
// mark, and a checksum of zeros, which means none.
const emptySnapshot = "REDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// emptyData is a snapshot and an append-only file of Redis 7 or later, both empty.
var emptyData = map[string]string{
	snapshot: emptySnapshot,
	"appendonlydir/appendonly.aof.1.base.rdb": emptySnapshot,
	"appendonlydir/appendonly.aof.1.incr.aof": "",
	"appendonlydir/appendonly.aof.manifest": "file appendonly.aof.1.base.rdb seq 1 type b\n" +
		"file appendonly.aof.1.incr.aof seq 1 type i\n",
}

// listens is a text that the log of a server contains once the server is ready.
const listens = "Ready to accept"

// awaitReady waits until the started server replies to PING. A reply from another server on the same port does not
// count. If the server refuses the password, a log that contains listens proves that the server is ready.
func awaitReady(ctx context.Context, s launch.Starting, password string) error {
	return launch.Await(ctx, s, launch.LastLine, func(ctx context.Context) error {
		return Control(s.Addr(), password, func(client *redis.Client) error {
			err := client.Ping(ctx).Err()
			var refused redis.Error
			if errors.As(err, &refused) && !strings.HasPrefix(refused.Error(), "LOADING") &&
				strings.Contains(s.Log(ctx), listens) {
				return nil
			}
			if err != nil {
				return err
			}
			text, err := client.Info(ctx, "server").Result()
			if err == nil && !isOurs(s, replies.ParseInfo(text)) {
				return errors.New("another Redis, which lockbench did not start, replies at this address")
			}
			return err
		})
	})
}

// isOurs reports whether an INFO comes from the started server. It recognises a process by its ID. It recognises a
// server in a container by its age: an earlier server on the same port would be older, and two servers cannot listen on
// one port.
func isOurs(s launch.Starting, fields replies.Info) bool {
	if p, ok := s.(*launch.Process); ok {
		return fields["process_id"] == strconv.Itoa(p.PID())
	}
	age := fields.Integer("uptime_in_seconds")
	return age != nil && time.Duration(*age-1)*time.Second <= time.Since(s.Began())
}
