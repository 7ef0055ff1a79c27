package handoff

import (
	"crypto/sha1" //nolint:gosec // it keeps nothing secret
	"encoding/hex"
	"strings"
)

// suffix ends the names of all locks.
const suffix = ":handoff"

// nameIn is what the lock of a key is called. In a cluster a name's hash tag must be one
// that others can carry too; a key that has braces and no tag gets one.
func nameIn(key string, cluster bool) string {
	if _, tagged := tagOf(key); cluster && !tagged && strings.Contains(key, "}") {
		sum := sha1.Sum([]byte(key)) //nolint:gosec // as above
		key = "{" + hex.EncodeToString(sum[:]) + "}" + key
	}
	return key + suffix
}

// tagOf is the part of a name that Redis Cluster hashes: what stands between the first
// brace and the next closing one, unless that is nothing; else all of it.
func tagOf(name string) (tag string, tagged bool) {
	if _, rest, ok := strings.Cut(name, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag, true
		}
	}
	return name, false
}

// processOf is the part of an id that names its process: owner.Names makes ids of a
// UUID and a number.
func processOf(id string) string {
	process, _, _ := strings.Cut(id, ":")
	return process
}
