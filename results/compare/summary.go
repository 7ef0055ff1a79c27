package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Medians returns the median of every metric, by name, over the comparable runs of a strategy (in
// a sweep, at one point), and the number of these runs.
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

// Names returns the strategies that ran; in a sweep, at each point.
func (r Report) Names() []string { return Side{Reports: []Report{r}}.titles() }

// Conditions returns a short hash of the workload, the machine and the Redis of a report. Reports
// with the same hash belong to one history. A new Go or kernel version does not start a new
// history.
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
