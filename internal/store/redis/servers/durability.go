package servers

import (
	"context"
	"slices"

	"github.com/lockbench/lockbench/internal/store"
)

// settings returns the settings for a topology, in addition to those of every server.
func (o Options) settings(wanted Topology) []string {
	return slices.Concat(wanted.row().settings, persistence(o.Durability))
}

// appendSync is the setting that lockbench uses together with an append-only file.
const appendSync = "--appendfsync"

// persistence returns settings for an append-only file: synced once a second, Redis's default for
// such a file, or before each answer.
func persistence(d store.Durability) []string {
	switch d {
	case store.Usual:
		return []string{"--appendonly", "yes", appendSync, "everysec"}
	case store.Synced:
		return []string{"--appendonly", "yes", appendSync, "always"}
	default:
		return nil
	}
}

// durability says what a crash of the node may lose, as in results.Redis. It ignores snapshots:
// they are minutes old.
func (n *node) durability(ctx context.Context) string {
	fields, err := readInfo(ctx, n.observer, "persistence")
	if err != nil || fields["aof_enabled"] == "" {
		return ""
	}
	if fields["aof_enabled"] == "0" {
		return string(store.InMemory)
	}
	config, err := n.observer.ConfigGet(ctx, "appendfsync").Result()
	if err != nil {
		return ""
	}
	switch config["appendfsync"] {
	case "always":
		return string(store.Synced)
	case "everysec":
		return "every second"
	}
	return "when the system likes"
}
