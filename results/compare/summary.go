package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Medians are those of every metric, by name, over the runs of a strategy (in a
// sweep, at one point) that can be compared, and the number of these runs.
func (r Report) Medians(strategy string) (medians map[string]float64, runs int) {
	usable := Side{Reports: []Report{r}}.runs(strategy)
	medians = map[string]float64{}
	for _, m := range Metrics() {
		if median := r.session(m, strategy); median != nil {
			medians[m.Name] = median.Value
		}
	}
	return medians, len(usable)
}

// Names are those of the strategies that ran, in a sweep at each point.
func (r Report) Names() []string { return Side{Reports: []Report{r}}.titles() }

// Conditions is a short name of the workload, the machine and the Redis of a
// report: reports of the same name belong to one history. A new Go or a new kernel
// is something that happens in a history and does not end it.
func (r Report) Conditions() string {
	all := conditions(r)
	delete(all, "environment go")
	delete(all, "environment kernel")
	hash := sha256.New()
	for _, what := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(hash, "%s=%s\n", what, all[what])
	}
	return hex.EncodeToString(hash.Sum(nil))[:8]
}
