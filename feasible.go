package lockbench

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/servers"
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
	why := ""
	for _, v := range p.Strategies {
		why = unfit(v.Info(), p.points()[0].Workload, topology)
		if why == "" {
			return nil
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: nothing that --strategy names can run here: %s", ErrConfig, why)
}
