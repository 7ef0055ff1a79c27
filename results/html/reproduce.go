package html

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/workloads"
)

// reproduce returns the commands that repeat the measurement: one, or one per generator of a
// merged report.
func reproduce(f File) string {
	points := f.Planned()
	if len(f.Generators) == 0 {
		return command(f, points, "-o", "json=run.json")
	}
	var lines, files []string
	for n, part := range f.Generators {
		theirs := slices.Clone(points)
		for i := range theirs {
			theirs[i].Workload = theirs[i].Workload.Times(1, len(f.Generators))
			theirs[i].Workload.Seed = part.Seed
		}
		file := fmt.Sprintf("part%d.json", n+1)
		lines = append(lines, command(f, theirs, "--session", "NEW-NAME", "--start-at", "INSTANT", "-o", "json="+file))
		files = append(files, file)
	}
	return strings.Join(append(lines, "lockbench merge "+strings.Join(files, " ")+" -o merged.json"), "\n")
}

func command(f File, points []workloads.Point, more ...string) string {
	var names []string
	for _, s := range f.Strategies {
		names = append(names, s.Name)
	}
	line := []string{"lockbench", "--strategy", strings.Join(names, ",")}
	line = append(line, workloads.Arguments(points)...)
	if f.Rounds > 1 {
		line = append(line, "--runs", strconv.Itoa(f.Rounds))
	}
	line = append(line, where(f)...)
	if f.Baselines == nil && len(f.Generators) == 0 {
		line = append(line, "--no-baselines")
	}
	line = append(line, more...)
	for i, word := range line {
		line[i] = words.Quoted(word)
	}
	return strings.Join(line, " ")
}

// where returns the flags that select the Redis.
func where(f File) []string {
	var words []string
	switch r := f.Redis; r.Source {
	case "container", "process":
		words = append(words, "--redis", r.Source)
	case "address":
		scheme := "redis://"
		if r.TLS {
			scheme = "rediss://"
		}
		nodes := slices.Clone(r.Nodes)
		if len(nodes) == 0 {
			nodes = []string{r.Address}
		}
		for i, node := range nodes {
			if !strings.HasPrefix(node, "/") && !strings.HasPrefix(node, "unix:") {
				nodes[i] = scheme + node
			}
		}
		words = append(words, "--redis", strings.Join(nodes, ","))
		if slices.ContainsFunc(f.Workload.Faults,
			func(fault workloads.Fault) bool { return fault.Kind().Place == workloads.OnServers }) {
			words = append(words, "--allow-faults-on-my-server")
		}
	}
	if t := f.Redis.Topology; t != "" && t != "single" && f.Redis.Source != "address" {
		words = append(words, "--topology", t)
	}
	// An image that was built on this machine is not available elsewhere.
	if image := f.Redis.Image; image != "" && !strings.HasPrefix(image, "lockbench-redis:") {
		words = append(words, "--image", image)
	}
	if len(f.Redis.PinnedCPUs) > 0 || len(f.Environment.PinnedCPUs) > 0 {
		words = append(words, "--pin")
	}
	return words
}
