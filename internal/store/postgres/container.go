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

// inside is the port behind a published one.
const inside = 5432

// image is what containers are made of: LOCKBENCH_POSTGRES_IMAGE, else PostgreSQL's own, else
// one of this machine's programs.
func image(o store.Options) launch.Image {
	return launch.Image{
		Wanted: cmp.Or(o.Image, os.Getenv("LOCKBENCH_POSTGRES_IMAGE")), Default: "postgres:17",
		Repository: "lockbench-postgres", Package: "postgresql", Parts: parts,
	}
}

// parts are what PostgreSQL needs to make a directory of data and to serve it, at the places
// where it is here: its programs find the rest by where they are.
func parts() (launch.Parts, error) {
	bin, err := programs()
	if err != nil {
		return launch.Parts{}, err
	}
	files := map[string]string{"bin/sh": "/bin/sh"} // by which initdb runs postgres
	add := func(file string) { files[strings.TrimPrefix(file, "/")] = file }
	for _, program := range []string{"initdb", "postgres"} {
		add(filepath.Join(bin, program))
	}
	top := filepath.Dir(bin)
	for _, library := range []string{"plpgsql.so", "dict_snowball.so"} { // initdb loads them
		add(filepath.Join(top, "lib", library))
	}
	share := filepath.Join(top, "share") // of Red Hat's package, and of one's own make
	if _, err := os.Stat(filepath.Join(share, "postgres.bki")); err != nil {
		share = filepath.Join("/usr/share/postgresql", filepath.Base(top)) // of Debian's
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
		Texts: map[string]string{ // the user that PostgreSQL's own image has too
			"etc/passwd": "root:x:0:0::/:/bin/sh\n" + containerUser + ":x:999:999::/tmp:/bin/sh\n",
			"etc/group":  "root:x:0:\n" + containerUser + ":x:999:\n",
		},
		Open:  []string{"tmp"},
		Lines: []string{"ENV PATH=" + bin + ":/usr/bin:/bin"},
	}, nil
}

// containerUser runs it there: PostgreSQL refuses to run as root.
const containerUser = "postgres"

// script makes a directory of data the first time, and becomes the server, whose arguments
// are the script's. It uses nothing but what the shell has built in.
const script = `cd /tmp || exit
if [ ! -e ` + dataDir + `/PG_VERSION ]; then
	umask 077
	printf '%s\n' "$` + secretEnv + `" >password
	initdb ` + initArgs + ` --pwfile=password -D ` + dataDir + ` || exit
	: >password
fi
exec postgres "$@"`

const secretEnv = "LOCKBENCH_SECRET"

// contain starts it in a container.
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
