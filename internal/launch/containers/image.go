package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
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
	// How long to wait for a registry's first answer; less if there is a local image.
	firstPatience, laterPatience = 20 * time.Second, 3 * time.Second
	// pullAgain is how long a failed pull is not repeated.
	pullAgain = 24 * time.Hour
)

// Obtain finds the image to run: the requested one; else the default one, local or pulled; else one
// built from this machine's own programs.
//
// The default is preferred, but a machine without a registry must not wait for it at every start. The
// local image exists only because a pull failed, so for a day it means that pulls fail. After
// that, Obtain tries a pull again and waits only a short time.
func (d *docker) Obtain(ctx context.Context, image launch.Image, logf func(string, ...any)) (string, error) {
	defer d.close()
	if image.Wanted != "" {
		return image.Wanted, d.pull(ctx, image.Wanted, firstPatience, logf)
	}
	if _, err := d.client.ImageInspect(ctx, image.Default); err == nil {
		return image.Default, nil
	}
	build, buildErr := newOfflineImage(ctx, image)
	patience := firstPatience
	if buildErr == nil {
		if local, err := d.client.ImageInspect(ctx, build.name); err == nil {
			if age := imageAge(local); age < pullAgain {
				return build.name, nil
			}
			patience = laterPatience
		}
	}
	pullErr := d.pull(ctx, image.Default, patience, logf)
	if pullErr == nil {
		return image.Default, nil
	}
	if buildErr != nil {
		return "", errors.Join(pullErr, fmt.Errorf("make an image of the machine's own server: %w", buildErr))
	}
	logf("%v", pullErr)
	logf("building an image out of this machine's %s", image.Package)
	if err := d.build(ctx, build); err != nil {
		return "", errors.Join(pullErr, err)
	}
	return build.name, nil
}

func imageAge(image client.ImageInspectResult) time.Duration {
	made, err := time.Parse(time.RFC3339Nano, image.Created)
	if err != nil {
		return 0
	}
	return time.Since(made)
}

// pull pulls an image unless it exists. patience limits the time until the registry begins to send.
func (d *docker) pull(ctx context.Context, image string, patience time.Duration, logf func(string, ...any)) error {
	_, err := d.client.ImageInspect(ctx, image)
	if err == nil || !errdefs.IsNotFound(err) {
		return err
	}
	logf("pulling %s", image)
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
		return fmt.Errorf("pull %s: %w", image, err)
	}
	for message, err := range response.JSONMessages(ctx) {
		impatient.Stop()
		if err == nil && message.Error != nil {
			err = message.Error
		}
		if err != nil {
			return fmt.Errorf("pull %s: %w", image, err)
		}
	}
	return nil
}

// buildTimeout bounds a build on a very slow machine: a Java has 300 MB.
const buildTimeout = 3 * time.Minute

// build makes the engine build an image. The archive is a file, because it may be large.
func (d *docker) build(ctx context.Context, image *offlineImage) error {
	defer d.close()
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()
	archive, err := os.CreateTemp("", "lockbench-image-*.tar")
	if err != nil {
		return fmt.Errorf("build %s: %w", image.name, err)
	}
	defer os.Remove(archive.Name())
	defer archive.Close()
	if err = image.archive(archive); err == nil {
		_, err = archive.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = d.provider.BuildImage(ctx, &testcontainers.ContainerRequest{FromDockerfile: testcontainers.FromDockerfile{
			ContextArchive: archive, Repo: image.repo, Tag: image.tag, KeepImage: true,
		}})
	}
	if err != nil {
		return fmt.Errorf("build %s: %w", image.name, err)
	}
	return nil
}

// errNoBuild says why an image cannot be built.
var errNoBuild = fmt.Errorf("only a Linux program can be put into a container, this is %s", runtime.GOOS)
