package presets_test

import (
	"errors"
	"testing"

	"github.com/lockbench/lockbench/workloads/presets"
)

func TestEveryPresetIsAWorkload(t *testing.T) {
	if len(presets.Names()) == 0 {
		t.Fatal("there are none")
	}
	for _, name := range presets.Names() {
		file, err := presets.Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if file.Description == "" {
			t.Errorf("%s does not say what it is", name)
		}
		points, err := file.Draft.Points()
		for _, p := range points {
			err = errors.Join(err, p.Workload.Validate())
		}
		if err != nil || len(points) == 0 {
			t.Errorf("%s: %d workloads, %v", name, len(points), err)
		}
	}
}
