package command

import (
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/strategies"
)

// rights prints what a strategy's user needs: for Redis as a redis-cli command, for another
// store in the store's own words.
func rights(line func(label, text string), i strategies.Info) {
	if !i.OnRedis() {
		if kind, err := store.Lookup(i.Store); i.Nodes > 0 && err == nil {
			if needer, ok := kind.(store.Needer); ok {
				label := "needs"
				for _, need := range needer.Needs("lockbench") {
					line(label, need)
					label = ""
				}
			}
		}
		return
	}
	line("ACL", i.Rights.SetUser("bench", engine.Prefix))
	if i.NoCluster == "" {
		line("", "in a cluster also "+strings.Join(clusterRights(i.Rights), " "))
	}
	line("", "for all figures also "+strings.Join(servers.MeasuringRights(), " "))
}

// clusterRights returns what the lock, its client and lockbench need in a cluster.
func clusterRights(r strategies.Rights) []string {
	var all []string
	for _, command := range slices.Concat(strategies.ConnectingCluster(), r.Cluster) {
		all = append(all, "+"+command)
	}
	return append(all, servers.ClusterRights()...)
}
