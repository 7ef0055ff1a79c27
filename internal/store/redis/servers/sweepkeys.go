package servers

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
)

// openBudget limits the search for old keys on a user's server before a run. For millions of keys use
// lockbench clean.
const openBudget = time.Second

// runKey finds the run ID in a key. Strategies may add a prefix and a suffix.
var runKey = regexp.MustCompile(`lockbench:\{([^:{}]+):`)

// sweep removes the keys of dead runs. budget bounds the search on each node; 0 means no bound.
func (s *Server) sweep(ctx context.Context, budget time.Duration) store.Swept {
	swept := store.Swept{Kind: "keys"}
	for _, node := range s.primaries() {
		sweepKeys(ctx, node, budget, &swept)
	}
	slices.Sort(swept.Runs) // a run may have left keys on several nodes
	swept.Runs = slices.Compact(swept.Runs)
	return swept
}

// logSwept reports what was removed, if anything.
func (o Options) logSwept(swept store.Swept) {
	if swept.Removed > 0 {
		o.logf("removed what a killed lockbench left: %d keys", swept.Removed)
	}
	for _, skipped := range swept.Skipped {
		o.logf("not swept: %s", skipped)
	}
}

// sweepKeys removes the keys of dead runs from a node. A run is alive while its observer or a client
// is connected.
func sweepKeys(ctx context.Context, n *node, budget time.Duration, swept *store.Swept) {
	look := ctx
	if budget > 0 {
		var cancel context.CancelFunc
		look, cancel = context.WithTimeout(ctx, budget)
		defer cancel()
	}
	skipped := func(why string, err error) {
		swept.Skipped = append(swept.Skipped, fmt.Sprintf("keys on %s: %s: %v", n.addr(), why, err))
	}
	found, err := scan(look, n.observer, "*lockbench:{*")
	if err != nil {
		skipped("scan", err)
		return
	}
	byRun := map[string][]string{}
	for _, key := range found {
		if match := runKey.FindStringSubmatch(key); match != nil {
			byRun[match[1]] = append(byRun[match[1]], key)
		}
	}
	if len(byRun) == 0 {
		return
	}
	// This must follow the scan: a run that begins in between has no keys in the result.
	list, err := n.observer.ClientList(ctx).Result()
	if err != nil {
		skipped("whose run lives cannot be told", err)
		return
	}
	for client := range replies.Clients(list) {
		if name, ok := strings.CutPrefix(client["name"], "lockbench:"); ok {
			run, _, _ := strings.Cut(name, ":")
			delete(byRun, run)
		}
	}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		remove := unlink
		if n.software.mode == "cluster" {
			remove = unlinkEach
		}
		if err := remove(ctx, n.observer, byRun[run]); err != nil {
			skipped("remove", err)
			continue
		}
		swept.Removed += len(byRun[run])
		swept.Runs = append(swept.Runs, run)
	}
}
