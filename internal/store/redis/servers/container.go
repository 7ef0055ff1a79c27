package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/replies"
)

// ownerLabel carries the owner of a container, as JSON.
const ownerLabel = "lockbench.owner"

// Container is a Redis of our own in a container. Its methods are safe for
// concurrent use.
type Container struct {
	docker    *docker
	container testcontainers.Container
	addr      string
	image     string
	network   string // host or published port
	saved     atomic.Bool
	started   time.Time // last
}

// startContainer starts a container of the best image there is and returns once
// Redis answers.
func startContainer(ctx context.Context, d *docker, options Options, cpus []int, args ...string) (*Container, error) {
	image, err := d.image(ctx, options)
	if err != nil {
		return nil, err
	}
	return d.runAnywhere(ctx, image, options, launch{pick: freePort, cpus: cpus, args: args})
}

// launch is how a container is started.
type launch struct {
	networking string // host or published port
	pick       picker
	cpus       []int    // to run on; empty is any
	args       []string // beside settings
}

// runAnywhere starts a container where it can be reached best. A published port
// costs more than half the throughput, so it is the host's network where there
// is one: on Linux, unless Docker runs in a machine of its own, which shows in
// that nobody answers.
func (d *docker) runAnywhere(ctx context.Context, image string, options Options, how launch) (*Container, error) {
	if runtime.GOOS == "linux" {
		how.networking = "host"
		c, err := d.run(ctx, image, options, how)
		if !errors.Is(err, errOutOfReach) {
			return c, err
		}
		options.logf("%v; publishing a port instead of sharing the host's network", err)
	}
	how.networking = "published port"
	return d.run(ctx, image, options, how)
}

func (d *docker) run(ctx context.Context, image string, options Options, how launch) (*Container, error) {
	var c *Container
	err := onFreePort(how.pick, func(port int) error {
		request, err := containerRequest(image, how, port, options.RunID)
		if err != nil {
			return err
		}
		c = &Container{docker: d, image: image, network: how.networking}
		// Creating is not interrupted halfway: the engine would finish it all the
		// same, and nobody would know the container to remove.
		creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
		defer cancel()
		c.container, err = d.provider.CreateContainer(creating, request)
		if err != nil {
			return errors.Join(fmt.Errorf("create a container of %s: %w", image, err), c.Close(ctx))
		}
		if err = c.start(ctx, port); err != nil {
			return errors.Join(fmt.Errorf("start a container of %s: %w", image, err), c.Close(ctx))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

func containerRequest(image string, how launch, port int, runID string) (testcontainers.ContainerRequest, error) {
	who, err := json.Marshal(thisProcess(runID))
	if err != nil {
		return testcontainers.ContainerRequest{}, err
	}
	request := testcontainers.ContainerRequest{
		Image:  image,
		Labels: map[string]string{ownerLabel: string(who)},
		Cmd:    append([]string{programIn(image)}, settings("127.0.0.1", port)...),
	}
	if how.networking != "host" {
		const inside = 6379
		request.ExposedPorts = []string{strconv.Itoa(inside) + "/tcp"}
		// Redis refuses strangers without a password; here the port is what keeps
		// them out, it is published on the loopback interface only.
		request.Cmd = append([]string{programIn(image)}, append(settings("0.0.0.0", inside), "--protected-mode", "no")...)
	}
	request.Cmd = append(request.Cmd, how.args...)
	request.HostConfigModifier = func(host *container.HostConfig) {
		host.CpusetCpus = cpuList(how.cpus)
		// No ulimit is set: Redis raises its file limit to the engine's hard one by
		// itself, and asking for more than that would fail.
		if how.networking == "host" {
			host.NetworkMode = "host"
			return
		}
		// A port chosen here stays the same over a restart.
		host.PortBindings = network.PortMap{network.MustParsePort(request.ExposedPorts[0]): {{
			HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(port),
		}}}
	}
	return request, nil
}

// cpuList writes CPUs as Docker reads them: "0,2".
func cpuList(cpus []int) string {
	texts := make([]string, len(cpus))
	for i, cpu := range cpus {
		texts[i] = strconv.Itoa(cpu)
	}
	return strings.Join(texts, ",")
}

func (c *Container) start(ctx context.Context, port int) error {
	c.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	c.started = time.Now()
	if err := c.container.Start(ctx); err != nil {
		return err
	}
	return awaitReady(ctx, c.addr, c)
}

func (c *Container) log(ctx context.Context) string {
	reader, err := c.container.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer reader.Close()
	log, err := io.ReadAll(reader)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// is knows its server by its age: what was there before is older, and two servers cannot
// listen on one port.
func (c *Container) is(fields replies.Info) bool {
	age := fields.Integer("uptime_in_seconds")
	return age != nil && time.Duration(*age-1)*time.Second <= time.Since(c.started)
}

func (c *Container) ended(ctx context.Context) bool {
	state, err := c.container.State(ctx)
	return err == nil && !state.Running
}

// Addr is host:port.
func (c *Container) Addr() string { return c.addr }

// Kill ends Redis with SIGKILL. It is no error when it had ended already.
func (c *Container) Kill(ctx context.Context) error {
	return c.ask("kill", func(id string) error {
		_, err := c.docker.client.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "SIGKILL"})
		if err != nil && c.ended(ctx) {
			return nil
		}
		return err
	})
}

// Pause stops all processes of the container.
func (c *Container) Pause(ctx context.Context) error {
	return c.ask("pause", func(id string) error {
		_, err := c.docker.client.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	})
}

// Resume lets a paused container go on.
func (c *Container) Resume(ctx context.Context) error {
	return c.ask("resume", func(id string) error {
		_, err := c.docker.client.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	})
}

// Save writes a snapshot into the container, which survives a restart of it.
func (c *Container) Save(ctx context.Context) error {
	c.saved.Store(true)
	return save(ctx, c.addr)
}

// Restart kills Redis and starts it again, empty and on the same port. An
// append-only file, which lockbench never asks for, would bring its data back.
func (c *Container) Restart(ctx context.Context) error {
	if err := c.Kill(ctx); err != nil {
		return err
	}
	if c.saved.Swap(false) {
		if err := c.ask("empty", func(id string) error { return c.docker.forget(ctx, id) }); err != nil {
			return err
		}
	}
	return c.startAgain(ctx)
}

// RestartWithData kills Redis and starts it again with what it had saved.
func (c *Container) RestartWithData(ctx context.Context) error {
	if err := c.Kill(ctx); err != nil {
		return err
	}
	return c.startAgain(ctx)
}

func (c *Container) startAgain(ctx context.Context) error {
	return c.ask("restart", func(id string) error {
		c.started = time.Now()
		if _, err := c.docker.client.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return err
		}
		return awaitReady(ctx, c.addr, c)
	})
}

// Close kills Redis and removes the container and its volumes.
func (c *Container) Close(ctx context.Context) error {
	if c.container == nil {
		return nil
	}
	// What was interrupted must still be cleaned up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return c.ask("remove", func(id string) error {
		_, err := c.docker.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		return err
	})
}

func (c *Container) ask(what string, do func(id string) error) error {
	defer c.docker.close()
	if err := do(c.container.GetContainerID()); err != nil {
		return fmt.Errorf("%s the container: %w", what, err)
	}
	return nil
}
