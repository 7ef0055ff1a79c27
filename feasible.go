package lockbench

import (
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
)

// Feasible says why the plan cannot be carried out on the servers that it asks for, as
// far as that can be told without a look at them; the error wraps ErrConfig. What only
// they or a strategy at work can tell comes out in Run.
func (p Plan) Feasible() error {
	topology, err := servers.ParseTopology(p.Redis.Topology)
	if err != nil {
		return nil // Validate says it
	}
	if p.Redis.options().Started() && topology.Kind == "" {
		topology.Kind = servers.Single
	}
	files, err := measure.MaxOpenFiles()
	if err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	var faults []error
	why, fit := "", 0
	for _, v := range p.Strategies {
		if w := unfit(v.Info(), p.points()[0].Workload, topology); w != "" {
			why = w
			continue
		}
		fit++
		faults = append(faults, p.tooManyFiles(v, topology.Primaries(), files))
	}
	if err := errors.Join(faults...); err != nil {
		return limited{err}
	}
	if fit == 0 && why != "" {
		return fmt.Errorf("%w: nothing that --strategy names can run here: %s", ErrConfig, why)
	}
	return nil
}
