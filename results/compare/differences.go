package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// Difference is a condition under which two reports were made that is not the
// same.
type Difference struct {
	What     string `json:"what"`      // "workload clients"
	Base     string `json:"base"`      // its value
	BaseFile string `json:"base_file"` // in this report
	Head     string `json:"head"`
	HeadFile string `json:"head_file"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s in %s, %s in %s", d.What, d.Base, d.BaseFile, d.Head, d.HeadFile)
}

// chance are fields that differ between any two sessions and say nothing of what
// was measured: seeds, ports, what was measured of the machine itself.
var chance = []string{
	"workload seed", "environment timer_overshoot_ns", "environment clock_resolution_ns",
	"redis address", "redis nodes", "redis why", "redis idle_cpu_percent", "redis label",
}

// off are the values of a field that is not in use.
var off = []string{"", "null", "false", "0", "[]", "{}"}

// usual are values that stand for what reports of earlier versions do not tell.
var usual = map[string]string{"redis name": "redis", "redis protocol": "3", "redis io_threads": "1", "redis durability": "memory"}

// Differences are the conditions, workload, machine and Redis, in which a report
// of either side is not like the base's first. Each is named once.
func Differences(base, head Side) []Difference {
	reports := append(slices.Clone(base.Reports), head.Reports...)
	if len(reports) < 2 {
		return nil
	}
	first := conditions(reports[0])
	seen := map[string]bool{}
	var found []Difference
	for _, report := range reports[1:] {
		other := conditions(report)
		for _, what := range fields(first, other) {
			if first[what] != other[what] && !seen[what] {
				seen[what] = true
				found = append(found, Difference{what, shown(first[what]), reports[0].File, shown(other[what]), report.File})
			}
		}
	}
	return found
}

func fields(a, b map[string]string) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

func shown(value string) string { return cmp.Or(value, "none") }

// conditions are the fields of the report's workload, environment and Redis as
// they stand in the document, so that a field that is added to it counts too.
func conditions(r Report) map[string]string {
	all := map[string]string{}
	parts := map[string]any{"workload": r.Workload, "environment": r.Environment, "redis": r.Redis}
	for _, s := range r.Stores {
		parts[strings.TrimSpace(s.Name+" "+s.Server.Label)] = s.Server
	}
	for part, of := range parts {
		document, err := json.Marshal(of)
		if err != nil {
			// Plain data that came out of such a document goes into one.
			all[part] = err.Error()
			continue
		}
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(document, &fields); err != nil {
			all[part] = err.Error()
		}
		for name, value := range fields {
			what, text := part+" "+name, strings.Trim(string(value), `"`)
			// An older lockbench does not have the field that is off in a newer one.
			if !byChance(what) && !slices.Contains(off, text) && usual[what] != text {
				all[what] = text
			}
		}
	}
	if len(r.Points) > 0 {
		var labels []string
		for _, point := range r.Points {
			labels = append(labels, point.Label)
		}
		all["workload points"] = strings.Join(labels, "; ")
	}
	if r.Redis.Source == "address" {
		all["redis host"] = host(r.Redis.Address)
	}
	return all
}

// byChance says whether a field differs between any two sessions; those of other stores are
// the same as Redis's.
func byChance(what string) bool {
	field := what[strings.LastIndex(what, " ")+1:]
	part := what[:len(what)-len(field)]
	return slices.Contains(chance, what) || part != "workload " && part != "environment " && slices.Contains(chance, "redis "+field)
}

// host is an address without its port, which may be another after a restart.
func host(address string) string {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return name
}
