package handoff

import (
	"bytes"
	"strings"
	"time"
)

// Grant is what the script that grants the lock tells its new owner, as text:
// "id epoch first block expiry now lock". A message has the number of the connection before
// it by which the process beats.
type grant struct {
	id           string
	fence, block int64 // the first of so many
	expiry, now  int64 // Redis's clock, in ms
	lock         string
}

// A fence is a count from the second in which it was granted, which goes up in 2^-29 s.
// Until 2030 it is above those of earlier versions, which were seconds in 2^-32 s and
// would be negative from 2038 on; these are from 2092 on.
const (
	epochBits = 29
	epochBase = 1_900_000_000 * (1<<32 - 1<<epochBits)
)

func fence(epoch, count int64) int64 { return epochBase + epoch<<epochBits + count }

// ttl is how long the lease lasts from when it was granted.
func (g grant) ttl() time.Duration { return millis(g.expiry - g.now) }

func parseGrant(text []byte) (g grant, ok bool) {
	id, rest, _ := bytes.Cut(text, space)
	epoch, rest := digits(rest)
	first, rest := digits(rest)
	g.block, rest = digits(rest)
	g.expiry, rest = digits(rest)
	g.now, rest = digits(rest)
	g.id, g.lock, g.fence = string(id), string(rest), fence(epoch, first)
	return g, epoch > 0 && g.now > 0
}

// parseState reads the list's first element, "owner epoch count block expiry last",
// as a grant to its owner.
func parseState(text []byte, ttl time.Duration) grant {
	owner, rest, _ := bytes.Cut(text, space)
	epoch, rest := digits(rest)
	count, rest := digits(rest)
	g := grant{id: string(owner)}
	g.block, rest = digits(rest)
	g.expiry, _ = digits(rest)
	g.fence = fence(epoch, count-g.block+1)
	g.now = g.expiry - ttl.Milliseconds()
	return g
}

// answer is what a script returned: "status time expiry", and a grant to somebody of
// this process if there is one. A status that ends with + has left work undone.
type answer struct {
	status      byte
	more        bool
	now, expiry int64
	grant       []byte
}

func parseAnswer(text []byte) (a answer) {
	status, rest, _ := bytes.Cut(text, space)
	if len(status) > 0 {
		a.status, a.more = status[0], len(status) > 1
	}
	a.now, rest = digits(rest)
	a.expiry, a.grant = digits(rest)
	return a
}

var space = []byte{' '}

// digits reads a number and the space behind it.
func digits(text []byte) (n int64, rest []byte) {
	for i, d := range text {
		if d < '0' || d > '9' {
			if d == ' ' {
				return n, text[i+1:]
			}
			return 0, nil
		}
		n = 10*n + int64(d-'0')
	}
	return n, nil
}

// untold is the answer of a script that has done what it was to do, but may not tell who
// is next.
func untold(err error) bool { return strings.HasPrefix(err.Error(), "PUBLISH ") }

// transient are the answers of a server that will soon be able, or of one that is not
// the right one any more.
func transient(err error) bool {
	for _, prefix := range []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return true
		}
	}
	return false
}
