package stream

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func entry(id, number string) redis.XMessage {
	return redis.XMessage{ID: id, Values: map[string]any{"n": number}}
}

func TestAdvance(t *testing.T) {
	for _, test := range []struct {
		name       string
		entries    []redis.XMessage
		news, lost bool
		seen       string
	}{
		{"nothing", nil, false, false, "100-5"},
		{"the next one", []redis.XMessage{entry("100-6", "8")}, true, false, "100-6"},
		{"in a later millisecond", []redis.XMessage{entry("101-0", "8")}, true, false, "101-0"},
		{"of a longer id", []redis.XMessage{entry("1000-0", "8")}, true, false, "1000-0"},
		{"several", []redis.XMessage{entry("100-6", "8"), entry("101-0", "9"), entry("101-1", "10")}, true, false, "101-1"},
		{"seen before", []redis.XMessage{entry("99-9", "6"), entry("100-5", "7")}, false, false, "100-5"},
		{"partly seen before", []redis.XMessage{entry("100-5", "7"), entry("101-0", "8")}, true, false, "101-0"},
		{"the next one trimmed away", []redis.XMessage{entry("101-0", "9")}, true, true, "101-0"},
		{"one deleted in between", []redis.XMessage{entry("101-0", "8"), entry("102-0", "10")}, true, true, "102-0"},
		{"a stream that begins anew", []redis.XMessage{entry("101-0", "1"), entry("102-0", "2")}, true, false, "102-0"},
		{"anew, and trimmed", []redis.XMessage{entry("101-0", "2")}, true, true, "101-0"},
		{"somebody else's", []redis.XMessage{{ID: "101-0", Values: map[string]any{"x": "y"}}}, true, true, "101-0"},
	} {
		g := &group{seen: position{ms: 100, seq: 5, number: 7}}
		news, lost := g.advance(test.entries)
		if news != test.news || lost != test.lost || g.seen.id() != test.seen {
			t.Errorf("%s: news %v, lost %v, seen %s; want %v, %v, %s",
				test.name, news, lost, g.seen.id(), test.news, test.lost, test.seen)
		}
	}
}

func TestIDsAreReadAsWritten(t *testing.T) {
	for _, id := range []string{"0-0", "1700000000000-3", "18446744073709551615-18446744073709551615"} {
		if got := parse(id).id(); got != id {
			t.Errorf("%s was read as %s", id, got)
		}
	}
}
