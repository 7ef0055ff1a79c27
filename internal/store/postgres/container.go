package postgres

import (
	"cmp"
	"context"
	"os"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// inside is the port in the container behind a published one.
const inside = 5432

// image says how to get the image of the containers.
func image(o store.Options) launch.Image {
	const variable = "LOCKBENCH_POSTGRES_IMAGE"
	return launch.Image{Wanted: cmp.Or(o.Image, os.Getenv(variable)), Variable: variable, Default: "postgres:17"}
}

// containerUser runs the server: PostgreSQL refuses to run as root.
const containerUser = "postgres"

// script creates a data directory the first time, and then executes the server with the script's
// arguments. It uses only the shell's built-in commands.
const script = `cd /tmp || exit
if [ ! -e ` + dataDir + `/PG_VERSION ]; then
	umask 077
	printf '%s\n' "$` + secretEnv + `" >password
	initdb ` + initArgs + ` --pwfile=password -D ` + dataDir + ` || exit
	: >password
fi
exec postgres "$@"`

const secretEnv = "LOCKBENCH_SECRET"

// contain starts the server in a container.
func (o *own) contain(ctx context.Context, engine launch.Engine, image string, at launching) error {
	var err error
	o.Started, err = launch.InContainer(ctx, engine, launch.Container{
		Image: image, RunID: at.runID, CPUs: at.cpus, Pick: launch.FreePort, Taken: taken, Inside: inside, Logf: at.Logf,
		User: containerUser, Env: map[string]string{secretEnv: o.password}, Entrypoint: []string{"sh", "-c", script, "postgres"},
		Command: func(bind string, port int, _ bool) []string { return settings(bind, port, at.Durability) },
		Ready:   func(ctx context.Context, c launch.Contained) error { return o.ready(ctx, c) },
	}, "postgres")
	return err
}

func taken(err error) bool { return strings.Contains(err.Error(), "Address already in use") }
