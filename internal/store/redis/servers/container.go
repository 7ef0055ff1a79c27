package servers

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
)

// Container is a Redis of our own in a container. Its methods are safe for
// concurrent use.
type Container struct {
	launch.Contained
	password string
	saved    atomic.Bool
	appends  bool // has an append-only file
}

// imageVariable names an image in the environment.
const imageVariable = "LOCKBENCH_REDIS_IMAGE"

// image says how to get the image of the containers: redis:8, or the one that docker/setup.sh builds
// out of this machine's redis-server where there is no registry.
func image(wanted string) launch.Image {
	return launch.Image{Wanted: wanted, Variable: imageVariable, Default: "redis:8", Offline: "lockbench-redis:offline"}
}

// startContainer starts a container and returns when Redis answers. args come after our own
// settings and override them.
func startContainer(ctx context.Context, engine launch.Engine, options Options, image, network string, pick launch.Picker, cpus []int, args ...string) (*Container, error) {
	const inside = 6379
	of := launch.Container{
		Image: image, RunID: options.RunID, Logf: options.logf, Network: network, Pick: pick, CPUs: cpus, Inside: inside, Taken: portTaken, Beside: bus(args),
		Command: func(bind string, port int, published bool) []string {
			command := append([]string{programIn(image)}, settings(bind, port)...)
			if published && options.password == "" {
				// Without a password Redis refuses connections from other hosts. Here the port itself
				// prevents them: it is published on the loopback interface only.
				command = append(command, "--protected-mode", "no")
			}
			return append(command, args...)
		},
		Ready: func(ctx context.Context, c launch.Contained) error {
			// A server is the new one if it is young enough: a server that was there before is older,
			// and two servers cannot listen on one port.
			return awaitReady(ctx, c, options.password, func(fields replies.Info) bool {
				age := fields.Integer("uptime_in_seconds")
				return age != nil && time.Duration(*age-1)*time.Second <= time.Since(c.Started())
			})
		},
	}
	if options.password != "" {
		// The file is in the container only, and its Redis may run as any user.
		of.Files = func(int) map[string]string { return map[string]string{"/" + secrets: secretSettings(options.password)} }
		args = append([]string{"--include", "/" + secrets}, args...)
	}
	c, err := engine.Run(ctx, of)
	if err != nil {
		return nil, err
	}
	return &Container{Contained: c, password: options.password, appends: slices.Contains(args, appendSync)}, nil
}

// Save writes a snapshot into the container; it survives a restart.
func (c *Container) Save(ctx context.Context) error {
	c.saved.Store(true)
	return save(ctx, c.Addr(), c.password)
}

// emptySnapshot is a snapshot without data: the magic word with the format's version, the end
// mark, and a checksum of zeros, which means none.
const emptySnapshot = "REDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// emptyAppends returns the files of an empty append-only file of Redis 7 or later, relative to the
// working directory.
func emptyAppends() map[string]string {
	return map[string]string{
		"appendonlydir/appendonly.aof.1.base.rdb": emptySnapshot,
		"appendonlydir/appendonly.aof.1.incr.aof": "",
		"appendonlydir/appendonly.aof.manifest":   "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n",
	}
}

// Restart kills Redis and starts it again, empty and on the same port.
func (c *Container) Restart(ctx context.Context) error {
	if err := c.Kill(ctx); err != nil {
		return err
	}
	// Files cannot be deleted there: the image may contain no program except Redis.
	empty := map[string]string{}
	if c.appends {
		empty = emptyAppends()
	}
	if c.saved.Swap(false) {
		empty[snapshot] = emptySnapshot
	}
	for name, contents := range empty {
		if err := c.Put(ctx, name, []byte(contents)); err != nil {
			return err
		}
	}
	return c.Again(ctx)
}

// RestartWithData kills Redis and starts it again with its saved data.
func (c *Container) RestartWithData(ctx context.Context) error {
	if err := c.Kill(ctx); err != nil {
		return err
	}
	return c.Again(ctx)
}
