package containers

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
)

// ownerLabel is the label with the owner of a container, as JSON.
const ownerLabel = "lockbench.owner"

// startTimeout bounds the creation of a container on a very slow machine.
const startTimeout = 20 * time.Second

// contained is a launch.Contained.
type contained struct {
	docker    *docker
	of        launch.Server
	container testcontainers.Container
	addr      string
	kept      launch.Kept // until Close, also after Kill
	started   time.Time
}

// Run starts a container. A published port costs more than half of the throughput, so the default is
// the host's network on Linux. If Docker runs in a virtual machine, the server does not answer
// there; then Run uses a published port, unless the host's network was asked for.
func (d *docker) Run(ctx context.Context, of launch.Server) (launch.Contained, error) {
	if of.Container.Network != launch.OnPort && runtime.GOOS == "linux" {
		shared := of
		shared.Container.Network = launch.OnHost
		c, err := d.run(ctx, shared)
		if !errors.Is(err, launch.ErrOutOfReach) {
			return c, err
		}
		of.Container.Logf("%v; publishing a port instead of sharing the host's network", err)
	}
	if of.Container.Network == launch.OnHost {
		return nil, errNoHost
	}
	of.Container.Network = launch.OnPort
	return d.run(ctx, of)
}

var errNoHost = errors.New("containers can only reach each other on the host's network, which there is none of: " +
	"use --redis process")

func (d *docker) run(ctx context.Context, of launch.Server) (launch.Contained, error) {
	var c *contained
	image := of.Container.Image
	err := launch.OnFreePort(of.Pick, of.Taken, func(port int) error {
		request, err := containerRequest(of, port)
		if err != nil {
			return err
		}
		c = &contained{docker: d, of: of}
		c.kept.Keep(port, of.Beside)
		// Do not interrupt the creation: the engine would complete it nevertheless, and lockbench
		// would not know the container to remove.
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

func containerRequest(of launch.Server, port int) (testcontainers.ContainerRequest, error) {
	note, err := launch.Note(of.RunID)
	if err != nil {
		return testcontainers.ContainerRequest{}, err
	}
	how := of.Container
	at := launch.Place{Bind: "127.0.0.1", Port: port, Image: how.Image}
	request := testcontainers.ContainerRequest{
		Image: how.Image, Labels: map[string]string{ownerLabel: note}, Env: how.Env, Entrypoint: how.Entrypoint,
		ConfigModifier: func(config *container.Config) { config.User = cmp.Or(how.User, config.User) },
	}
	if how.Network != launch.OnHost {
		at = launch.Place{Bind: "0.0.0.0", Port: how.Inside, Image: how.Image, Published: true}
		request.ExposedPorts = []string{strconv.Itoa(how.Inside) + "/tcp"}
	}
	request.Cmd = of.Args(at)
	if how.Files != nil {
		for file, text := range how.Files(at) {
			request.Files = append(request.Files, testcontainers.ContainerFile{
				Reader: strings.NewReader(text), ContainerFilePath: file, FileMode: 0o644,
			})
		}
	}
	request.HostConfigModifier = func(host *container.HostConfig) {
		host.CpusetCpus = cpuList(of.CPUs)
		// Set no ulimit: Redis raises its file limit to the engine's hard limit itself, and a
		// higher one would fail.
		if how.Network == launch.OnHost {
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

// cpuList writes CPUs in Docker's form: "0,2".
func cpuList(cpus []int) string {
	texts := make([]string, len(cpus))
	for i, cpu := range cpus {
		texts[i] = strconv.Itoa(cpu)
	}
	return strings.Join(texts, ",")
}

func (c *contained) start(ctx context.Context, port int) error {
	c.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	c.started = time.Now()
	if err := c.container.Start(ctx); err != nil {
		return err
	}
	return c.of.Ready(ctx, c)
}

// Log returns the container's output.
func (c *contained) Log(ctx context.Context) string {
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

// Ended says whether the container has stopped.
func (c *contained) Ended(ctx context.Context) bool {
	state, err := c.container.State(ctx)
	return err == nil && !state.Running
}

// Addr is host:port.
func (c *contained) Addr() string { return c.addr }

// Network is host or published port.
func (c *contained) Network() string { return c.of.Container.Network }

// Began returns the time of the last start.
func (c *contained) Began() time.Time { return c.started }

// PID returns the ID of its first process.
func (c *contained) PID(ctx context.Context) int {
	if about, err := c.container.Inspect(ctx); err == nil && about.State != nil {
		return about.State.Pid
	}
	return 0
}

// Kill ends the server with SIGKILL. It is no error if the server has ended already.
func (c *contained) Kill(ctx context.Context) error {
	return c.ask("kill", func(id string) error {
		_, err := c.docker.client.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "SIGKILL"})
		if err != nil && c.Ended(ctx) {
			return nil
		}
		return err
	})
}

// Pause stops all processes of the container.
func (c *contained) Pause(ctx context.Context) error {
	return c.ask("pause", func(id string) error {
		_, err := c.docker.client.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	})
}

// Resume continues a paused container.
func (c *contained) Resume(ctx context.Context) error {
	return c.ask("resume", func(id string) error {
		_, err := c.docker.client.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	})
}

// Put replaces files in the working directory of the stopped container.
func (c *contained) Put(ctx context.Context, files map[string]string) error {
	return c.ask("write files into", func(id string) error {
		about, err := c.docker.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return fmt.Errorf("find its directory: %w", err)
		}
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for name, text := range files {
			err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}))
			_, wrong := io.WriteString(w, text)
			err = errors.Join(err, wrong)
		}
		if err = errors.Join(err, w.Close()); err != nil {
			return err
		}
		_, err = c.docker.client.CopyToContainer(ctx, id, client.CopyToContainerOptions{
			DestinationPath: cmp.Or(about.Container.Config.WorkingDir, "/"), Content: &archive,
		})
		return err
	})
}

// Again starts the ended container.
func (c *contained) Again(ctx context.Context) error {
	return c.ask("restart", func(id string) error {
		c.started = time.Now()
		if _, err := c.docker.client.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return err
		}
		return c.of.Ready(ctx, c)
	})
}

// Close kills the server and removes the container and its volumes.
func (c *contained) Close(ctx context.Context) error {
	defer c.kept.Free()
	if c.container == nil {
		return nil
	}
	// Clean up after an interruption too.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return c.ask("remove", func(id string) error {
		_, err := c.docker.client.ContainerRemove(ctx, id,
			client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsNotFound(err) { // it was closed before
			return nil
		}
		return err
	})
}

func (c *contained) ask(what string, do func(id string) error) error {
	defer c.docker.close()
	if err := do(c.container.GetContainerID()); err != nil {
		return fmt.Errorf("%s the container: %w", what, err)
	}
	return nil
}
