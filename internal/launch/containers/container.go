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
	"sync"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
)

// ownerLabel is the label that holds the path of a container's home directory. The lockbench process that started the
// container keeps this directory locked.
const ownerLabel = "lockbench.owner"

// startTimeout is the time limit for the creation of a container. It is long enough for a very slow machine.
const startTimeout = 20 * time.Second

// contained is a server in a container. It implements launch.Started.
type contained struct {
	docker    *docker
	of        launch.Definition
	addr      string
	home      launch.Home
	kept      launch.Kept // reserves its ports until Close, also after Kill
	used      launch.CPUTime
	container testcontainers.Container // nil if it could not be created

	mu    sync.Mutex
	began time.Time
	pid   int // 0 until PID finds it
}

// Run starts a container. On Linux it prefers the host's network, because a published port more than halves the
// throughput. If Docker runs in a virtual machine, the server is not reachable on the host's network; then Run uses a
// published port, unless the host's network was requested.
func (d *docker) Run(ctx context.Context, of launch.Definition) (launch.Started, error) {
	if of.Container.Network != launch.OnPort && runtime.GOOS == "linux" {
		shared := of
		shared.Container.Network = launch.OnHost
		c, err := d.run(ctx, shared)
		if !errors.Is(err, errOutOfReach) {
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

var (
	errOutOfReach = errors.New("the container runs but accepts no connection at its address")
	errNoHost     = errors.New("containers can reach each other only on the host's network, " +
		"which Docker does not offer here: use --redis process")
)

func (d *docker) run(ctx context.Context, of launch.Definition) (launch.Started, error) {
	home, err := launch.HomeOfContainer()
	if err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", of.Name, err)
	}
	c := &contained{
		docker: d, of: of, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(of.Ports[0])),
		home: home, kept: launch.Keep(of.Ports),
	}
	if err := c.create(ctx); err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return c, nil
}

// create creates the container and starts it.
func (c *contained) create(ctx context.Context) error {
	request := containerRequest(c.of, c.home)
	// Do not interrupt the creation: the engine would still complete it, and lockbench would not know which container to
	// remove.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	var err error
	if c.container, err = c.docker.provider.CreateContainer(creating, request); err != nil {
		return fmt.Errorf("create a container of %s: %w", c.of.Container.Image, err)
	}
	return c.Again(ctx)
}

func containerRequest(of launch.Definition, home launch.Home) testcontainers.ContainerRequest {
	how, port := of.Container, of.Ports[0]
	at := launch.Location{Bind: "127.0.0.1", Port: port, Image: how.Image}
	request := testcontainers.ContainerRequest{
		Image: how.Image, Labels: map[string]string{ownerLabel: home.Dir},
	}
	if how.Network != launch.OnHost {
		at = launch.Location{Bind: "0.0.0.0", Port: how.Inside, Image: how.Image, Published: true}
		request.ExposedPorts = []string{strconv.Itoa(how.Inside) + "/tcp"}
	}
	request.Cmd = of.Args(at)
	for file, text := range how.Files {
		request.Files = append(request.Files, testcontainers.ContainerFile{
			Reader: strings.NewReader(text), ContainerFilePath: file, FileMode: 0o644,
		})
	}
	request.HostConfigModifier = func(host *container.HostConfig) {
		// Set no ulimit: Redis itself raises its limit of open files to the engine's hard limit, and a limit above that would
		// fail.
		if how.Network == launch.OnHost {
			host.NetworkMode = "host"
			return
		}
		// With an explicit port, the server keeps its address when it restarts.
		host.PortBindings = network.PortMap{network.MustParsePort(request.ExposedPorts[0]): {{
			HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(port),
		}}}
	}
	return request
}

// reached waits until the server accepts connections. If the container runs but no server accepts connections at its
// address within 20 s, or within 2 s after the container's log reports that the server listens, the error is
// errOutOfReach. The usual cause is that lockbench and the container do not share a loopback interface.
func (c *contained) reached(ctx context.Context) error {
	patience, listens := 20*time.Second, c.of.Container.Listens
	for began := time.Now(); ; {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.addr)
		switch {
		case err == nil:
			return conn.Close()
		case ctx.Err() != nil:
			return fmt.Errorf("wait for the container: %w", errors.Join(err, ctx.Err()))
		case c.Ended(ctx):
			return nil // Ready reports that the server has ended
		case time.Since(began) > patience:
			return fmt.Errorf("%w %s", errOutOfReach, c.addr)
		}
		if listens != "" && strings.Contains(c.Log(ctx), listens) {
			listens, began, patience = "", time.Now(), 2*time.Second
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
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

// Ended reports whether the container has stopped.
func (c *contained) Ended(ctx context.Context) bool {
	state, err := c.container.State(ctx)
	return err == nil && !state.Running
}

// Addr returns the address for clients as host:port.
func (c *contained) Addr() string { return c.addr }

// Network returns "host" or "published port".
func (c *contained) Network() string { return c.of.Container.Network }

// Began returns the time of the last start.
func (c *contained) Began() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began
}

// PID requests the process ID from the engine once, and waits at most two seconds for it. It returns 0 if the process
// with that ID is not the server, because an ID from another machine could belong to any process here.
func (c *contained) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		about, err := c.container.Inspect(ctx)
		if err == nil && about.State != nil && about.State.Pid > 0 && launch.Runs(about.State.Pid, c.of.Name) {
			c.pid = about.State.Pid
		}
	}
	return c.pid
}

// CPU returns the CPU time in seconds of the server's processes since the first start, or nil if no process ID was ever
// known.
func (c *contained) CPU() *float64 { return c.used.Read(c.PID()) }

// Kill ends the server with SIGKILL. It returns nil if the server has already ended.
func (c *contained) Kill(ctx context.Context) error {
	c.CPU() // records the CPU time
	return c.withContainer("kill", func(id string) error {
		_, err := c.docker.client.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "SIGKILL"})
		if err != nil && !c.Ended(ctx) {
			return err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.pid = 0 // the ID may now belong to another process
		return nil
	})
}

// Pause stops all processes of the container.
func (c *contained) Pause(ctx context.Context) error {
	return c.withContainer("pause", func(id string) error {
		_, err := c.docker.client.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	})
}

// Resume continues a paused container.
func (c *contained) Resume(ctx context.Context) error {
	return c.withContainer("resume", func(id string) error {
		_, err := c.docker.client.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	})
}

// Again restarts the container after its server has ended, and waits until the server is ready. The container has kept
// its data.
func (c *contained) Again(ctx context.Context) error {
	return c.withContainer("start", func(id string) error {
		c.mu.Lock()
		c.began, c.pid = time.Now(), 0
		c.mu.Unlock()
		if _, err := c.docker.client.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return err
		}
		if err := c.reached(ctx); err != nil {
			return err
		}
		return c.of.Ready(ctx, c)
	})
}

// Anew kills the server, overwrites its data with empty files and starts it. It cannot delete files, because an image
// may contain no program that deletes them.
func (c *contained) Anew(ctx context.Context) error {
	if err := c.Kill(ctx); err != nil {
		return err
	}
	err := c.withContainer("write files into", func(id string) error {
		about, err := c.docker.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return fmt.Errorf("find the directory of the container: %w", err)
		}
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for name, text := range c.of.Container.Empty {
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
	if err != nil {
		return err
	}
	return c.Again(ctx)
}

// Close kills the server and removes its container and its volumes, even if ctx has ended.
func (c *contained) Close(ctx context.Context) error {
	defer c.kept.Free()
	if c.container == nil {
		return c.home.Remove()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	return c.withContainer("remove", func(id string) error { return c.docker.remove(ctx, id, c.home) })
}

func (c *contained) withContainer(what string, do func(id string) error) error {
	defer c.docker.close()
	if err := do(c.container.GetContainerID()); err != nil {
		return fmt.Errorf("%s the container of %s: %w", what, c.of.Container.Image, err)
	}
	return nil
}
