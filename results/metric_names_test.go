package results

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Thresholds know a distribution by the names of the metrics that are percentiles of it.
func TestPercentilesAreNamedAfterTheirDistribution(t *testing.T) {
	of := map[string]uintptr{}
	for _, m := range Metrics() {
		if m.of == nil {
			continue
		}
		at := strings.LastIndex(m.Name, "_p")
		digits := strings.ReplaceAll(fmt.Sprint(m.percentile), ".", "")
		if at < 0 || m.Name[at:] != "_p"+digits {
			t.Errorf("%s is the percentile %v: its name does not end with _p%s", m.Name, m.percentile, digits)
			continue
		}
		stem, source := m.Name[:at], reflect.ValueOf(m.of).Pointer()
		if other, there := of[stem]; there && other != source {
			t.Errorf("%s is of another distribution than the others of its name", m.Name)
		}
		of[stem] = source
	}
}
