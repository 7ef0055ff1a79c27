package workloads

import (
	"slices"
	"strconv"
)

// Arguments returns the flags for these workloads, one or those of a sweep, without options
// at their defaults.
func Arguments(points []Point) []string {
	var arguments []string
	usual := Default().Given()
	for _, field := range Fields() {
		if follows(field.Name, points) {
			continue
		}
		var values []string
		for _, p := range points {
			for _, value := range p.Workload.Given()[field.Name] {
				if !slices.Contains(values, value) {
					values = append(values, value)
				}
			}
		}
		switch {
		case slices.Equal(values, usual[field.Name]):
		case field.List:
			for _, value := range values {
				arguments = append(arguments, "--"+field.Name, value)
			}
		case field.Switch:
			arguments = append(arguments, "--"+field.Name)
		default:
			arguments = append(arguments, "--"+field.Name, field.Join(values))
		}
	}
	return arguments
}

// follows says whether a Draft derives the option by itself.
func follows(name string, points []Point) bool {
	return !slices.ContainsFunc(points, func(p Point) bool {
		w := p.Workload
		switch name {
		case "instances":
			return w.Instances != min(DefaultInstances, w.Clients)
		case "duration":
			return len(w.Stages) == 0
		case "rate":
			return len(w.Stages) == 0 || w.Rate != Rate(w.Stages[0].Target)
		}
		return true
	})
}

// Given returns the texts, by option, from which a Draft makes this workload. An option that
// is not in use has none.
func (s Spec) Given() map[string][]string {
	all := map[string][]string{}
	for name, text := range s.texts() {
		all[name] = []string{text}
	}
	whole := map[string]int64{"iterations": s.Iterations, "instances": int64(s.Instances), "pool": int64(s.Pool), "seed": s.Seed}
	for name, n := range whole {
		if n != 0 {
			all[name] = []string{strconv.FormatInt(n, 10)}
		}
	}
	if s.Rate != 0 {
		all["rate"] = []string{s.Rate.String()}
	}
	if s.Burst != 0 {
		all["burst"] = []string{s.Burst.String()}
	}
	if s.Timeout != nil {
		all["timeout"] = []string{s.Timeout.String()}
	}
	if s.Coalesce {
		all["coalesce"] = []string{"true"}
	}
	for _, stage := range s.Stages {
		all["stage"] = append(all["stage"], stage.String())
	}
	for _, fault := range s.Faults {
		all["fault"] = append(all["fault"], fault.String())
	}
	return all
}
