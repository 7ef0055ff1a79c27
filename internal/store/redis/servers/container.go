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
	saved   atomic.Bool
	appends bool // to a file
}

// image is what containers of Redis are made of: redis:8, or of the machine's own
// redis-server, or Valkey under that name, and its redis-cli, which compose files want.
func image(wanted string) launch.Image {
	return launch.Image{Wanted: wanted, Default: "redis:8", Repository: offlineRepo, Package: "redis-server", Parts: ownParts}
}

// startContainer starts a container of an image and returns once Redis answers. args
// follow our own settings and so win over them.
func startContainer(ctx context.Context, engine launch.Engine, options Options, image, network string, pick launch.Picker, cpus []int, args ...string) (*Container, error) {
	const inside = 6379
	c, err := engine.Run(ctx, launch.Container{
		Image: image, RunID: options.RunID, Logf: options.logf, Network: network, Pick: pick, CPUs: cpus, Inside: inside, Taken: portTaken, Beside: bus(args),
		Command: func(bind string, port int, published bool) []string {
			command := append([]string{programIn(image)}, settings(bind, port)...)
			if published {
				// Redis refuses strangers without a password; here the port is what keeps
				// them out, it is published on the loopback interface only.
				command = append(command, "--protected-mode", "no")
			}
			return append(command, args...)
		},
		Ready: func(ctx context.Context, c launch.Contained) error {
			// It is known by its age: what was there before is older, and two servers
			// cannot listen on one port.
			return awaitReady(ctx, c, func(fields replies.Info) bool {
				age := fields.Integer("uptime_in_seconds")
				return age != nil && time.Duration(*age-1)*time.Second <= time.Since(c.Started())
			})
		},
	})
	if err != nil {
		return nil, err
	}
	return &Container{Contained: c, appends: slices.Contains(args, appendSync)}, nil
}

// Save writes a snapshot into the container, which survives a restart of it.
func (c *Container) Save(ctx context.Context) error {
	c.saved.Store(true)
	return save(ctx, c.Addr())
}

// emptySnapshot is a snapshot of nothing: the magic word with the format's
// version, the end mark, and a checksum of zeros, which stands for none.
const emptySnapshot = "REDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// emptyAppends are the files, below the working directory, of an append-only file with
// nothing in it, as Redis has them from version 7 on.
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
	// Nothing can be deleted there: the image may hold no program but Redis.
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

// RestartWithData kills Redis and starts it again with what it had saved.
func (c *Container) RestartWithData(ctx context.Context) error {
	if err := c.Kill(ctx); err != nil {
		return err
	}
	return c.Again(ctx)
}
