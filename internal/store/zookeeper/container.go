package zookeeper

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// inside is the port in the container behind a published one, place the directory of its files.
const inside, place = 2181, "/lockbench"

// image says how to get the image of the containers.
func image(o store.Options) launch.Image {
	const variable = "LOCKBENCH_ZOOKEEPER_IMAGE"
	return launch.Image{Wanted: cmp.Or(o.Image, os.Getenv(variable)), Variable: variable, Default: "zookeeper:3.9"}
}

// contain starts the member in a container.
func (m member) contain(ctx context.Context, engine launch.Engine, image, network, runID string, o store.Options) (launch.Started, error) {
	const jars = "lib/*" // relative to the working directory of ZooKeeper's own image
	return launch.InContainer(ctx, engine, launch.Container{
		Image: image, RunID: runID, Network: network, Pick: m.pick, CPUs: m.cpus, Inside: inside, Logf: o.Logf, Beside: m.beside,
		Entrypoint: []string{"java"}, User: "0", // root owns these files in every image
		Command: func(string, int, bool) []string { return m.options(place, jars) },
		Files: func(port int) map[string]string {
			files := map[string]string{place + "/" + dataDir + "/myid": fmt.Sprintln(m.id)}
			for name, text := range quiet {
				files[place+"/"+name] = text
			}
			bind := "127.0.0.1"
			if port == inside { // behind a published port
				bind = "0.0.0.0"
			}
			files[place+"/"+configFile] = m.config(place, bind, port)
			return files
		},
		Ready: func(ctx context.Context, c launch.Contained) error { return ready(ctx, c) },
	}, "java")
}
