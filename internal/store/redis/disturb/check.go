package disturb

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/workloads"
)

// Check returns an error for every fault that is impossible on such servers, or that a user has
// not permitted on a server of their own. A zero topology is not known yet.
func Check(all []workloads.Fault, topology servers.Topology, started, allowed bool) []error {
	var wrong []error
	for _, f := range all {
		kind := f.Kind()
		name := "--fault " + f.Name
		switch {
		case kind.Place != workloads.OnServers:
		case !started && kind.Owned:
			wrong = append(wrong, fmt.Errorf("%s needs a Redis that lockbench starts itself", name))
		case !started && !allowed:
			wrong = append(wrong, fmt.Errorf("%s would disturb a Redis that lockbench has not started: --allow-faults-on-my-server allows it", name))
		}
		if topology.Kind == "" {
			continue
		}
		if kind.Topology != "" && kind.Topology != string(topology.Kind) {
			wrong = append(wrong, fmt.Errorf("%s needs --topology %s:N, not %s", name, kind.Topology, topology))
			continue
		}
		last := f.Node
		if f.N > 1 {
			last += f.N - 1
		}
		if count := topology.Servers(); kind.Takes("node") && last >= count {
			wrong = append(wrong, fmt.Errorf("%s: there is no node %d, of %d from 0 on", name, last, count))
		}
	}
	return wrong
}
