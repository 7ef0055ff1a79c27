package advise

import (
	"strconv"
	"strings"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/workloads"
)

// Commands returns the shell commands that repeat a plan, one for each of its points. They contain no
// secret: if the address of Redis has one, a comment says where to put the address.
func Commands(p lockbench.Plan) []string {
	points := p.Sweep
	if len(points) == 0 {
		points = []workloads.Point{{Workload: p.Workload}}
	}
	servers, remark := where(p.Redis)
	var all []string
	for _, point := range points {
		line := append([]string{"lockbench", "--strategy", names(p.Strategies)}, workloads.Arguments([]workloads.Point{point})...)
		line = append(line, "--runs", strconv.Itoa(p.Rounds))
		line = append(append(line, servers...), "--no-baselines")
		for i, word := range line {
			line[i] = words.Quoted(word)
		}
		all = append(all, strings.Join(line, " ")+remark)
	}
	return all
}

// where returns the options that select the Redis, without a secret, and a comment on what is then
// missing.
func where(r lockbench.StoreOptions) (options []string, remark string) {
	switch secret := strings.Contains(r.Address, "@") || strings.Contains(r.Address, "password"); {
	case secret:
		remark = "  # with the address of Redis, which has a secret, in LOCKBENCH_REDIS"
	case r.Address != "" && r.Address != "auto":
		options = append(options, "--redis", r.Address)
	}
	for _, option := range [][2]string{{"--topology", r.Topology}, {"--ca-file", r.CAFile}, {"--image", r.Image}} {
		if option[1] != "" {
			options = append(options, option[0], option[1])
		}
	}
	return options, remark
}
