// Package redisson is what the locks of Redisson's family have in common: names of
// keys and channels, the wait for a release that is told on a channel, the hash
// that says who holds a lock and how often, the watchdog that renews it.
//
// The formats are Redisson's, so that a service in Java and one in Go can contend
// for one lock; the scripts are not.
package redisson

import "strings"

// Prefixed names what belongs to a key: prefix:{key}, in the key's hash slot. A
// key that has a hash tag of its own keeps it: prefix:key.
func Prefixed(prefix, key string) string {
	if strings.Contains(key, "{") {
		return prefix + ":" + key
	}
	return prefix + ":{" + key + "}"
}

// Suffixed is Prefixed with the addition at the end: {key}:suffix, or key:suffix.
func Suffixed(key, suffix string) string {
	if strings.Contains(key, "{") {
		return key + ":" + suffix
	}
	return "{" + key + "}:" + suffix
}

// tag is the part of a name that Redis Cluster hashes.
func tag(name string) string {
	if _, after, ok := strings.Cut(name, "{"); ok {
		if inside, _, ok := strings.Cut(after, "}"); ok && inside != "" {
			return inside
		}
	}
	return name
}
