package store

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/strategies"
)

// IDPattern is a regular expression for the ID of a session: a letter from a to f and 7 more hexadecimal digits, or 15
// more if several generators share the session. A plain number, a word or a date hardly ever has this form.
const IDPattern = "[a-f][0-9a-f]{7}(?:[0-9a-f]{8})?"

// NewRunID returns a run ID that is very likely unique.
func NewRunID() string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails, by its documentation
	return runID(random)
}

// SharedRunID returns the run ID of several generators, each of which contributed a random text. It is longer than the
// ID of a single generator, so that no generator can search for a text that yields the ID of another run.
func SharedRunID(texts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return runID(sum[:8])
}

func runID(random []byte) string {
	return string("abcdef"[random[0]%6]) + hex.EncodeToString(random)[1:]
}

// IsRunID reports whether a text has the form of a run ID.
func IsRunID(text string) bool { return wholeID.MatchString(text) }

var wholeID = regexp.MustCompile("^" + IDPattern + "$")

// lockKey matches the key of a lock, lockbench:{SESSION:RUN:NUMBER}.
var lockKey = regexp.MustCompile(`lockbench:\{(` + IDPattern + `):(0|[1-9][0-9]{0,8}):(0|[1-9][0-9]{0,8})\}`)

// KeyNames matches the names of the keys that a run of certain strategies creates. Lockbench never removes a key whose
// name does not match.
type KeyNames struct{ around *regexp.Regexp }

// NamesOf returns the KeyNames of the given strategies, including the keys of the workload's counters.
func NamesOf(infos ...strategies.Info) KeyNames {
	patterns := []string{regexp.QuoteMeta("{key}:counter"), regexp.QuoteMeta("{key}:counter:floor")}
	for _, info := range infos {
		for _, key := range info.Keys {
			patterns = append(patterns, strings.ReplaceAll(regexp.QuoteMeta(key), `\*`, "[0-9a-f]+"))
		}
	}
	return KeyNames{regexp.MustCompile("^(?:" + strings.Join(patterns, "|") + ")$")}
}

// namesOnRedis returns the KeyNames of all strategies that lock in Redis: the registered strategies and the strategies
// in infos.
func namesOnRedis(infos []strategies.Info) KeyNames {
	infos = slices.Clone(infos)
	for _, s := range strategies.All() {
		infos = append(infos, s.Info)
	}
	return NamesOf(slices.DeleteFunc(infos, func(i strategies.Info) bool { return cmp.Or(i.Store, Redis) != Redis })...)
}

// Run returns the session and the number of the run that created a key. ours is false if lockbench does not create keys
// with this name.
func (n KeyNames) Run(key string) (session string, number int, ours bool) {
	at := lockKey.FindStringSubmatchIndex(key)
	if at == nil || !n.around.MatchString(key[:at[0]]+"{key}"+key[at[1]:]) {
		return "", 0, false
	}
	number, _ = strconv.Atoi(key[at[4]:at[5]]) // lockKey admits only digits
	return key[at[2]:at[3]], number, true
}
