package stream

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// position is an entry of a stream, or the place before the first.
type position struct {
	ms, seq uint64 // its id
	number  int64  // the entries' own count, without gaps
}

// parse reads an id as Redis writes it, such as "1700000000000-3".
func parse(id string) (p position) {
	ms, seq, _ := strings.Cut(id, "-")
	p.ms, _ = strconv.ParseUint(ms, 10, 64)
	p.seq, _ = strconv.ParseUint(seq, 10, 64)
	return p
}

// positionOf is the position of an entry. An entry that the release script has not made has
// the number 0, and looks as if others had been lost.
func positionOf(entry redis.XMessage) position {
	p := parse(entry.ID)
	number, _ := entry.Values["n"].(string)
	p.number, _ = strconv.ParseInt(number, 10, 64)
	return p
}

func (p position) id() string { return fmt.Sprintf("%d-%d", p.ms, p.seq) }

// after says whether p comes after q in the stream.
func (p position) after(q position) bool {
	return cmp.Or(cmp.Compare(p.ms, q.ms), cmp.Compare(p.seq, q.seq)) > 0
}
