// Package containers runs servers in containers of a Docker engine. Importing it registers the engine with package
// launch.
package containers

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/lockbench/lockbench/internal/launch"
)

// dockerTimeout limits the wait for Docker's response to the first request.
const dockerTimeout = 2 * time.Second

func init() {
	launch.UseEngine(func(ctx context.Context) (launch.Engine, error) { return openDocker(ctx) })
}

// docker is a connection to a Docker engine that has responded to a ping. It implements launch.Engine.
type docker struct {
	provider *testcontainers.DockerProvider
	client   client.APIClient
}

// openDocker finds the engine as the docker command does. It returns an error if the engine does not respond to a ping
// within dockerTimeout.
func openDocker(ctx context.Context) (*docker, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	probe, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Docker: %w", err)
	}
	defer probe.Close()
	if _, err := probe.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("ping Docker: %w", err)
	}
	provider, err := testcontainers.ProviderDefault.GetProvider(testcontainers.WithLogger(log.NewNoopLogger()))
	if err != nil {
		return nil, fmt.Errorf("open Docker: %w", err)
	}
	engine, ok := provider.(*testcontainers.DockerProvider)
	if !ok {
		return nil, fmt.Errorf("open Docker: unexpected provider %T", provider)
	}
	return &docker{provider: engine, client: engine.Client()}, nil
}

// close closes the connections to the engine; a later call opens new ones.
func (d *docker) close() { _ = d.provider.Close() }

// Sweep removes the containers of killed lockbench processes.
func (d *docker) Sweep(ctx context.Context) launch.Swept {
	defer d.close()
	var swept launch.Swept
	list, err := d.client.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", ownerLabel),
	})
	if err != nil {
		return launch.Swept{Skipped: []string{fmt.Sprintf("containers: %v", err)}}
	}
	for _, c := range list.Items {
		home, left := launch.Abandoned(c.Labels[ownerLabel])
		if !left {
			continue
		}
		if err := d.remove(ctx, c.ID, home); err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("container %.12s: %v", c.ID, err))
			continue
		}
		swept.Containers = append(swept.Containers, c.ID)
	}
	return swept
}

// remove removes a container with its volumes, and then its home. If the container cannot be removed, the home stays,
// so that a later sweep finds the container. It returns nil if the container was removed before, for example by
// testcontainers' reaper.
func (d *docker) remove(ctx context.Context, id string, home launch.Home) error {
	_, err := d.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err != nil && !errdefs.IsNotFound(err) {
		home.Leave()
		return err
	}
	return home.Remove()
}

// Quiet turns testcontainers' own logger off, because important messages are also returned as errors. It also prevents
// the start of testcontainers' reaper, a second container with another image, because Sweep does the reaper's work.
// Both are settings of the whole process, so only a command or a test calls Quiet, before it opens anything.
var Quiet = sync.OnceFunc(func() {
	log.SetDefault(log.NewNoopLogger())
	_ = os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
})
