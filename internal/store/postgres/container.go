package postgres

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// inside is the port in the container behind a published one.
const inside = 5432

// image says how to get the image of the containers: LOCKBENCH_POSTGRES_IMAGE, else PostgreSQL's own
// image, else one built from this machine's programs.
func image(o store.Options) launch.Image {
	return launch.Image{
		Wanted: cmp.Or(o.Image, os.Getenv("LOCKBENCH_POSTGRES_IMAGE")), Default: "postgres:17",
		Repository: "lockbench-postgres", Package: "postgresql", Parts: parts,
	}
}

// parts returns what PostgreSQL needs to create a data directory and to serve it. The paths are those
// of this machine: the programs find the other files relative to their own path.
func parts() (launch.Parts, error) {
	bin, err := programs()
	if err != nil {
		return launch.Parts{}, err
	}
	files := map[string]string{"bin/sh": "/bin/sh"} // initdb runs postgres with it
	add := func(file string) { files[strings.TrimPrefix(file, "/")] = file }
	for _, program := range []string{"initdb", "postgres"} {
		add(filepath.Join(bin, program))
	}
	top := filepath.Dir(bin)
	for _, library := range []string{"plpgsql.so", "dict_snowball.so"} { // initdb loads them
		add(filepath.Join(top, "lib", library))
	}
	share := filepath.Join(top, "share") // in Red Hat's package, and in self-compiled installations
	if _, err := os.Stat(filepath.Join(share, "postgres.bki")); err != nil {
		share = filepath.Join("/usr/share/postgresql", filepath.Base(top)) // in Debian's package
	}
	err = filepath.WalkDir(share, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && entry.Name() != "man" {
			add(file)
		}
		return nil
	})
	if err != nil {
		return launch.Parts{}, fmt.Errorf("find the files of PostgreSQL: %w", err)
	}
	return launch.Parts{
		Files: files,
		Texts: map[string]string{ // the same user as in PostgreSQL's own image
			"etc/passwd": "root:x:0:0::/:/bin/sh\n" + containerUser + ":x:999:999::/tmp:/bin/sh\n",
			"etc/group":  "root:x:0:\n" + containerUser + ":x:999:\n",
		},
		Open:  []string{"tmp"},
		Lines: []string{"ENV PATH=" + bin + ":/usr/bin:/bin"},
	}, nil
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
