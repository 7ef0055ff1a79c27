package main

import (
	"slices"
	"strings"
)

// libraries are other people's locks.
var libraries = []string{"redislock", "redsync", "rueidislock"}

// plain are the locks of this module that most people write for themselves.
var plain = []string{"spin", "pubsub"}

// base is a variant's strategy.
func base(variant string) string {
	name, _, _ := strings.Cut(variant, ":")
	return name
}

func isPeer(variant string) bool  { return slices.Contains(libraries, base(variant)) }
func isSpin(variant string) bool  { return base(variant) == "spin" }
func isGated(variant string) bool { return base(variant) == "gated" }
func isRival(variant string) bool { return isPeer(variant) || slices.Contains(plain, base(variant)) }

// isPolling are redislock and redsync, whose waiters sleep and try again.
func isPolling(variant string) bool {
	return base(variant) == "redislock" || base(variant) == "redsync"
}

// isOurs is whatever is measured beside the rivals, but for the libraries behind a mutex.
func isOurs(variant string) bool { return !isRival(variant) && !isGated(variant) }
