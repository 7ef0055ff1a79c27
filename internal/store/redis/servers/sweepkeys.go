package servers

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
)

// openBudget is how long a run may look for old keys on a user's server before
// it starts; a database of millions is left to lockbench clean.
const openBudget = time.Second

// runKey finds the run a key belongs to. Strategies may put something before
// and behind it.
var runKey = regexp.MustCompile(`lockbench:\{([^:{}]+):`)

// sweepKeys removes the keys of dead runs from a server. A run whose observer or
// clients are still connected lives. budget bounds the search; 0 does not.
func sweepKeys(ctx context.Context, n *node, budget time.Duration) Swept {
	look := ctx
	if budget > 0 {
		var cancel context.CancelFunc
		look, cancel = context.WithTimeout(ctx, budget)
		defer cancel()
	}
	skipped := func(why string, err error) Swept {
		return Swept{Swept: launch.Swept{Skipped: []string{fmt.Sprintf("keys on %s: %s: %v", n.addr(), why, err)}}}
	}
	found, err := scan(look, n.observer, "*lockbench:{*")
	if err != nil {
		return skipped("scan", err)
	}
	byRun := map[string][]string{}
	for _, key := range found {
		if match := runKey.FindStringSubmatch(key); match != nil {
			byRun[match[1]] = append(byRun[match[1]], key)
		}
	}
	if len(byRun) == 0 {
		return Swept{}
	}
	// Asked after the scan: a run that begins in between has no keys in it yet.
	list, err := n.observer.ClientList(ctx).Result()
	if err != nil {
		return skipped("whose run lives cannot be told", err)
	}
	for client := range replies.Clients(list) {
		if name, ok := strings.CutPrefix(client["name"], "lockbench:"); ok {
			run, _, _ := strings.Cut(name, ":")
			delete(byRun, run)
		}
	}
	swept := Swept{}
	for _, run := range slices.Sorted(maps.Keys(byRun)) {
		remove := unlink
		if n.software.mode == "cluster" {
			remove = unlinkEach
		}
		if err := remove(ctx, n.observer, byRun[run]); err != nil {
			swept.add(skipped("remove", err))
			continue
		}
		swept.Keys += len(byRun[run])
		swept.Runs = append(swept.Runs, run)
	}
	return swept
}
