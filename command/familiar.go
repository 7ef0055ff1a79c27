package command

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/strategies"
)

// Names that people know from elsewhere, in lower case, and what they are called here.
var (
	familiarLocks = map[string]struct{ here, because string }{
		"redisson":      {"pubsub", "Redisson's RLock; its others are fair, fenced, redisson-spin, semaphore"},
		"rlock":         {"pubsub", "Redisson's RLock"},
		"rfairlock":     {"fair", "Redisson's RFairLock"},
		"rfencedlock":   {"fenced", "Redisson's RFencedLock"},
		"rspinlock":     {"redisson-spin", "Redisson's RSpinLock"},
		"rsemaphore":    {"semaphore", "Redisson's RSemaphore"},
		"redis-py":      {"spin:backoff=fixed,base=100ms", "the nearest to redis-py's Lock, which is exec:redis-py"},
		"rueidis":       {"rueidislock", "its lock"},
		"bsm/redislock": {"redislock", "its package"},
	}
	familiarFlags = map[string]string{
		"host": "--redis HOST:PORT", "port": "--redis HOST:PORT", "url": "--redis", "server": "--redis",
		"uri": "--redis", "redis-url": "--redis", "redis-uri": "--redis", "redis-host": "--redis", "redis-addr": "--redis",
		"vus": "--clients", "users": "--clients", "threads": "--clients", "concurrency": "--clients",
		"connections": "--clients, or --pool for the connections of an instance", "pods": "--instances",
		"processes": "--instances", "requests": "--iterations", "time": "--duration", "format": "--output",
		"rps": "--rate", "min-runs": "--runs", "count": "--runs", "out": "--output", "export-csv": "--output csv=FILE",
		"summary-export": "--output json=FILE", "export-json": "--output json=FILE",
		"export-markdown": "--output markdown=FILE",
	}
	familiarCommands = map[string]string{
		"ls": "list", "bench": "run", "benchmark": "run", "diff": "compare", "html": "report", "test": "check",
	}
)

// recognised replaces the names of locks that are known from elsewhere by those that they have here, and says which. A
// driver's name gets its prefix, where drivers can be meant.
func recognised(lists []string, drivers bool) (known, notes []string) {
	for _, list := range lists {
		before, rest := driver.Cut(list)
		parts := strings.Split(before, ",")
		if strings.HasPrefix(rest, "+") { // what stands before it is mixed with a driver
			last := len(parts) - 1
			parts, rest = parts[:last], ","+parts[last]+rest
		} else if before == "" && rest != "" {
			parts = nil
		}
		var all, found []string
		for _, part := range parts {
			name := strings.TrimSpace(part)
			lock, familiar := familiarLocks[strings.ToLower(name)]
			_, isDriver := driver.All()[name]
			isDriver = isDriver && drivers
			switch _, err := strategies.Lookup(name); {
			case err == nil, !familiar && !isDriver:
				all = append(all, part)
			case isDriver:
				found = append(found, driver.Prefix+name)
				notes = append(notes, fmt.Sprintf("%s is measured as %s%s", name, driver.Prefix, name))
			default:
				all = append(all, lock.here)
				notes = append(notes, fmt.Sprintf("%s is measured as %s: %s", name, lock.here, lock.because))
			}
		}
		if rest != "" {
			all = append(all, strings.TrimPrefix(rest, ","))
		}
		known = append(known, strings.Join(append(all, found...), ","))
	}
	return known, notes
}
