package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// counted lists names with their counts, most frequent first.
func counted(count map[string]int) string {
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s (%d)", name, count[name])
	}
	return strings.Join(names, ", ")
}

// many counts things by their name.
func many(n int, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

// significant writes three digits.
func significant(v float64) string {
	if math.IsInf(v, 0) {
		return "unbounded"
	}
	return results.Plain(v)
}

func ratio(v float64) string { return significant(v) }

func percent(v float64) string { return significant(v*100) + " %" }

func duration(ns float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}} {
		if ns >= unit.size {
			return significant(ns/unit.size) + " " + unit.name
		}
	}
	return significant(ns) + " ns"
}
