package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Difference is a condition, such as the number of clients, in which a report differs from the base's first report.
type Difference struct {
	What     string `json:"what"`      // "workload clients"
	Base     string `json:"base"`      // its value
	BaseFile string `json:"base_file"` // the file with this value
	Head     string `json:"head"`
	HeadFile string `json:"head_file"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s in %s, %s in %s", d.What, d.Base, d.BaseFile, d.Head, d.HeadFile)
}

// chance maps each part of a report to the names of some of its fields, separated by spaces. These fields may differ
// between sessions measured under the same conditions: they hold seeds, addresses, and measurements of the machine
// itself.
var chance = map[string]string{
	"workload":    "seed",
	"environment": "timer_overshoot_ns",
	"redis":       "address nodes why label",
}

// Differences returns every condition of the workload, the machine or Redis in which a report of either side differs
// from the base's first report. It returns each condition only once.
func Differences(base, head Side) []Difference {
	reports := append(slices.Clone(base.Reports), head.Reports...)
	if len(reports) < 2 {
		return nil
	}
	first := conditions(reports[0].Report)
	seen := map[string]bool{}
	var found []Difference
	for _, report := range reports[1:] {
		other := conditions(report.Report)
		both := maps.Clone(first)
		maps.Copy(both, other)
		for _, what := range slices.Sorted(maps.Keys(both)) {
			if first[what] == other[what] || seen[what] {
				continue
			}
			seen[what] = true
			found = append(found, Difference{
				What: what, Base: cmp.Or(first[what], "none"), BaseFile: reports[0].Name,
				Head: cmp.Or(other[what], "none"), HeadFile: report.Name,
			})
		}
	}
	return found
}

// conditions returns the fields of the report's workload, environment and servers by their JSON names. It reads them
// from the encoded report, so that a field added later is compared without a change to this function.
func conditions(r *results.Report) map[string]string {
	all := map[string]string{}
	add := func(part string, of any, chance string) {
		fields := map[string]json.RawMessage{}
		document, err := json.Marshal(of)
		if err == nil {
			err = json.Unmarshal(document, &fields)
		}
		if err != nil { // cannot happen: the data was decoded from such a document
			all[part] = err.Error()
		}
		for name, value := range fields {
			if !slices.Contains(strings.Fields(chance), name) {
				all[part+" "+name] = strings.Trim(string(value), `"`)
			}
		}
	}
	add("workload", r.Workload, chance["workload"])
	add("environment", r.Environment, chance["environment"])
	add("redis", r.Redis, chance["redis"])
	for _, s := range r.Stores {
		add(s.Name, s.Server, chance["redis"])
	}
	var points []string
	for _, point := range r.Points {
		points = append(points, point.Label)
	}
	all["workload points"] = strings.Join(points, "; ")
	if r.Redis.Source == "address" {
		host, _, err := net.SplitHostPort(r.Redis.Address)
		if err != nil {
			host = r.Redis.Address
		}
		all["redis host"] = host // without its port, which may change at a restart
	}
	return all
}
