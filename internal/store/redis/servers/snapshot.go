package servers

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"fmt"

	"github.com/moby/moby/client"
)

// emptySnapshot is a snapshot of nothing: the magic word with the format's
// version, the end mark, and a checksum of zeros, which stands for none.
const emptySnapshot = "REDIS0009\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// forget replaces the snapshot in a stopped container by an empty one. Nothing
// can be deleted there: the image may hold no program but Redis.
func (d *docker) forget(ctx context.Context, id string) error {
	about, err := d.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return fmt.Errorf("find the data: %w", err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := w.WriteHeader(&tar.Header{Name: snapshot, Mode: 0o644, Size: int64(len(emptySnapshot))}); err != nil {
		return err
	}
	if _, err := w.Write([]byte(emptySnapshot)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_, err = d.client.CopyToContainer(ctx, id, client.CopyToContainerOptions{
		DestinationPath: cmp.Or(about.Container.Config.WorkingDir, "/"), Content: &archive,
	})
	return err
}
