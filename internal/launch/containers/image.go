package containers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
)

const (
	// pullTimeout is the time limit for a whole pull.
	pullTimeout = 5 * time.Minute
	// patience limits the wait for the registry's first response.
	patience = 20 * time.Second
)

// Obtain returns the name of the image to run: the requested image or, if none was requested, the default image. If
// Docker lacks the default image but has the offline image, Obtain returns the offline image, which is built only on
// machines without a registry. In all other cases it pulls the image if Docker lacks it.
func (d *docker) Obtain(ctx context.Context, image launch.Image, logf func(string, ...any)) (string, error) {
	defer d.close()
	name := cmp.Or(image.Wanted, image.Default)
	has := func(name string) bool {
		_, err := d.client.ImageInspect(ctx, name)
		return err == nil
	}
	switch {
	case has(name):
		return name, nil
	case image.Wanted == "" && image.Offline != "" && has(image.Offline):
		return image.Offline, nil
	}
	logf("pulling %s", name)
	if err := d.pull(ctx, name); err != nil {
		return "", fmt.Errorf("pull %s: %w", name, err)
	}
	return name, nil
}

// pull pulls an image. It returns an error if the registry sends nothing within patience.
func (d *docker) pull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	impatient := time.AfterFunc(patience, cancel)
	defer impatient.Stop()

	var how client.ImagePullOptions
	if _, auth, err := testcontainers.DockerImageAuth(ctx, image); err == nil {
		how.RegistryAuth, _ = authconfig.Encode(auth)
	}
	response, err := d.client.ImagePull(ctx, image, how)
	if err != nil {
		return err
	}
	for message, err := range response.JSONMessages(ctx) {
		impatient.Stop()
		if err == nil && message.Error != nil {
			err = message.Error
		}
		if err != nil {
			return err
		}
	}
	return nil
}
