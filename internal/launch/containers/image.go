package containers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
)

const (
	// pullTimeout limits a pull once the registry answers.
	pullTimeout = 5 * time.Minute
	// How long to wait for a registry's first answer; less if there is an offline image.
	firstPatience, laterPatience = 20 * time.Second, 3 * time.Second
	// pullAgain is how long a failed pull is not repeated.
	pullAgain = 24 * time.Hour
)

// Obtain finds the image to run: the requested one; else the default one, local or pulled; else the
// offline one.
//
// The default is preferred, but a machine without a registry must not wait for it at every start. The
// offline image exists only because a pull failed, so for a day it means that pulls fail. After
// that, Obtain tries a pull again and waits only a short time.
func (d *docker) Obtain(ctx context.Context, image launch.Image, logf func(string, ...any)) (string, error) {
	defer d.close()
	if image.Wanted != "" {
		return image.Wanted, d.pull(ctx, image.Wanted, firstPatience, logf)
	}
	if _, err := d.client.ImageInspect(ctx, image.Default); err == nil {
		return image.Default, nil
	}
	fallback, patience := "", firstPatience
	if image.Offline != "" {
		if local, err := d.client.ImageInspect(ctx, image.Offline); err == nil {
			if imageAge(local) < pullAgain {
				return image.Offline, nil
			}
			fallback, patience = image.Offline, laterPatience
		}
	}
	err := d.pull(ctx, image.Default, patience, logf)
	switch {
	case err == nil:
		return image.Default, nil
	case fallback == "" || ctx.Err() != nil:
		return "", err
	}
	logf("%v; taking %s", err, fallback)
	return fallback, nil
}

func imageAge(image client.ImageInspectResult) time.Duration {
	made, err := time.Parse(time.RFC3339Nano, image.Created)
	if err != nil {
		return 0
	}
	return time.Since(made)
}

// failed holds the errors of pulls, by engine and image: this process does not try them again.
var failed sync.Map

// pull pulls an image unless it exists. patience limits the time until the registry begins to send.
func (d *docker) pull(ctx context.Context, image string, patience time.Duration, logf func(string, ...any)) error {
	_, err := d.client.ImageInspect(ctx, image)
	if err == nil || !errdefs.IsNotFound(err) {
		return err
	}
	key := [2]string{d.client.DaemonHost(), image}
	if before, ok := failed.Load(key); ok {
		return before.(error)
	}
	logf("pulling %s", image)
	if err := d.pullNow(ctx, image, patience); err != nil {
		err = fmt.Errorf("pull %s: %w", image, err)
		if ctx.Err() == nil {
			failed.Store(key, err)
		}
		return err
	}
	return nil
}

func (d *docker) pullNow(ctx context.Context, image string, patience time.Duration) error {
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
