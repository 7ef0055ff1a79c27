package html

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// reproduce returns the command that repeats the measurement, of a merged report by a single generator.
func reproduce(f results.File) string {
	var names []string
	for _, s := range f.Strategies {
		names = append(names, s.Name)
	}
	line := []string{"lockbench", "--strategy", strings.Join(names, ",")}
	line = append(line, workloads.Arguments(f.Planned())...)
	if f.Rounds > 1 {
		line = append(line, "--runs", strconv.Itoa(f.Rounds))
	}
	line = append(line, where(f)...)
	if f.Baselines == nil && len(f.Generators) == 0 {
		line = append(line, "--no-baselines")
	}
	line = append(line, "-o", "json=run.json")
	for i, word := range line {
		line[i] = words.Quoted(word)
	}
	return strings.Join(line, " ")
}

// where returns the flags that select the Redis.
func where(f results.File) []string {
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
