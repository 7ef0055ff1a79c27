// Package containers runs servers in containers of a Docker engine. An import of it registers the
// engine with package launch.
package containers

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/lockbench/lockbench/internal/launch"
)

// dockerTimeout is how long Docker may take to answer the first request.
const dockerTimeout = 2 * time.Second

func init() {
	launch.UseEngine(func(ctx context.Context) (launch.Engine, error) { return openDocker(ctx) })
}

// docker is an engine that answers, a launch.Engine.
type docker struct {
	provider *testcontainers.DockerProvider
	client   client.APIClient
}

// openDocker finds the engine as the docker command does, and checks that it answers.
func openDocker(ctx context.Context) (*docker, error) {
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	probe, err := testcontainers.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("find Docker: %w", err)
	}
	defer probe.Close()
	if _, err := probe.Ping(ctx, client.PingOptions{}); err != nil {
		return nil, fmt.Errorf("ask Docker: %w", err)
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
