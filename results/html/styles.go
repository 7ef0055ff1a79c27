package html

import (
	"slices"
	"strings"
)

// familiar lists the locks that have a reserved style, so that they have the same colour in all reports. The first
// seven, which are compared most often, have solid lines. The others reuse these colours with dashed lines.
var familiar = []string{
	"spin", "pubsub", "handoff", "fair", "redsync", "blpop", "cohort",
	"redlock", "fenced", "redislock", "rueidislock", "redisson-spin", "etcd", "zookeeper", "postgres",
}

// styles returns the number of each strategy's style. A variant gets the style of its lock if no other strategy of the
// page uses that style. Every other strategy without a reserved style gets the first free one.
func styles(names []string) map[string]int {
	style, taken := map[string]int{}, map[int]bool{}
	assign := func(name string, number int) {
		style[name], taken[number] = number, true
	}
	for _, plain := range []bool{true, false} { // a lock goes before its variants
		for _, name := range names {
			lock, _, variant := strings.Cut(name, ":")
			number := slices.Index(familiar, lock)
			if _, has := style[name]; !has && number >= 0 && !taken[number] && variant != plain {
				assign(name, number)
			}
		}
	}
	for _, name := range names {
		number := 0
		for taken[number] {
			number++
		}
		if _, has := style[name]; !has {
			assign(name, number)
		}
	}
	return style
}
