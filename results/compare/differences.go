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

// Difference is a condition that is not the same in two reports.
type Difference struct {
	What     string `json:"what"`      // "workload clients"
	Base     string `json:"base"`      // its value
	BaseFile string `json:"base_file"` // the report with it
	Head     string `json:"head"`
	HeadFile string `json:"head_file"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s in %s, %s in %s", d.What, d.Base, d.BaseFile, d.Head, d.HeadFile)
}

// chance lists fields that differ between any two sessions and do not describe what was measured:
// seeds, ports, measurements of the machine itself.
var chance = []string{
	"workload seed", "environment timer_overshoot_ns", "environment clock_resolution_ns",
	"redis address", "redis nodes", "redis why", "redis idle_cpu_percent", "redis label",
}

// off lists the values of a field that is not in use.
var off = []string{"", "null", "false", "0", "[]", "{}"}

// usual lists the values that reports of earlier versions have without saying so.
var usual = map[string]string{"redis name": "redis", "redis protocol": "3", "redis io_threads": "1", "redis durability": "memory"}

// Differences returns the conditions (workload, machine and Redis) in which a report of either
// side differs from the base's first report, each once.
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

// conditions returns the fields of the report's workload, environment and Redis by their names
// in the document, so that it includes fields that are added later.
func conditions(r Report) map[string]string {
	all := map[string]string{}
	parts := map[string]any{"workload": r.Workload, "environment": r.Environment, "redis": r.Redis}
	for _, s := range r.Stores {
		parts[s.Name] = s.Server
	}
	for part, of := range parts {
		document, err := json.Marshal(of)
		if err != nil {
			// Cannot happen: the data was decoded from such a document.
			all[part] = err.Error()
			continue
		}
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(document, &fields); err != nil {
			all[part] = err.Error()
		}
		for name, value := range fields {
			what, text := part+" "+name, strings.Trim(string(value), `"`)
			// A field that is off in a newer report is missing in an older one.
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

// byChance says whether a field differs between any two sessions. The fields of other stores are
// treated like those of Redis.
func byChance(what string) bool {
	field := what[strings.LastIndex(what, " ")+1:]
	part := what[:len(what)-len(field)]
	return slices.Contains(chance, what) || part != "workload " && part != "environment " && slices.Contains(chance, "redis "+field)
}

// host returns an address without its port, which may change at a restart.
func host(address string) string {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return name
}
