package containers

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/lockbench/lockbench/internal/launch"
)

// Sweep removes the containers of dead owners.
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
		if !launch.Orphaned(c.Labels[ownerLabel]) {
			continue
		}
		_, err := d.client.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsNotFound(err) || errdefs.IsConflict(err) && strings.Contains(err.Error(), "already in progress") {
			continue // another process sweeps too
		}
		if err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("container %.12s: %v", c.ID, err))
			continue
		}
		swept.Containers = append(swept.Containers, c.ID)
	}
	return swept
}
