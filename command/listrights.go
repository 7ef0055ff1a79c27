package command

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/strategies"
)

// rights writes the user that a strategy needs, as a command for redis-cli.
func rights(line func(label, text string), i strategies.Info) {
	if i.Nodes == 0 {
		return
	}
	line("ACL", i.Rights.SetUser("bench", engine.Prefix))
	if i.NoCluster == "" {
		line("", "in a cluster also "+strings.Join(clusterRights(i.Rights), " "))
	}
	line("", "for all figures also "+strings.Join(servers.MeasuringRights(), " "))
}

// clusterRights are those of the lock, of its client and of lockbench.
func clusterRights(r strategies.Rights) []string {
	var all []string
	for _, command := range slices.Concat(strategies.ConnectingCluster(), r.Cluster) {
		all = append(all, "+"+command)
	}
	return append(all, servers.ClusterRights()...)
}
