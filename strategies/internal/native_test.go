package internal_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/token"
)

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

var _ redis.Error = reply("")

// Native must find out which of DELIFEQ and DELEX the server supports, and then send only that command. If the server
// supports neither, Delete must return ErrNoNative. If DELIFEQ fails after a failover to an older version, Native must
// try DELEX.
func TestNative(t *testing.T) {
	const unknown, forbidden, busy = reply("ERR unknown command"), reply("NOPERM no right"), reply("BUSY a script")
	for name, test := range map[string]struct {
		answers [][2]error // of DELIFEQ and DELEX, for each call
		sent    []string
		none    bool // the last call ends with ErrNoNative
		want    error
	}{
		"Valkey 9":         {[][2]error{{}, {}}, []string{"delifeq", "delifeq"}, false, nil},
		"Redis 8.4":        {[][2]error{{unknown}, {unknown}}, []string{"delifeq", "delex", "delex"}, false, nil},
		"older":            {[][2]error{{unknown, unknown}, {unknown, unknown}}, []string{"delifeq", "delex"}, true, nil},
		"forbidden":        {[][2]error{{forbidden, unknown}}, []string{"delifeq", "delex"}, true, forbidden},
		"refused at first": {[][2]error{{busy}}, []string{"delifeq"}, false, busy},
		"to an older":      {[][2]error{{}, {unknown, unknown}}, []string{"delifeq", "delifeq", "delex"}, true, nil},
		"refused, then not": {
			[][2]error{{unknown, busy}, {unknown}}, slices.Repeat([]string{"delifeq", "delex"}, 2), false, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var native token.Native
			var sent []string
			var err error
			key, value := "key", "value"
			for _, answers := range test.answers {
				var deleted bool
				deleted, err = native.Delete(&key, &value, func(words ...any) (any, error) {
					sent = append(sent, fmt.Sprint(words[0]))
					answer := answers[0]
					if words[0] == "delex" {
						answer = answers[1]
					}
					if answer != nil {
						return nil, answer
					}
					return int64(1), nil
				})
				if deleted != (err == nil) {
					t.Errorf("deleted %v with %v", deleted, err)
				}
			}
			if !slices.Equal(sent, test.sent) {
				t.Errorf("sent %v, want %v", sent, test.sent)
			}
			if errors.Is(err, token.ErrNoNative) != test.none || test.want != nil && !errors.Is(err, test.want) ||
				test.want == nil && !test.none && err != nil {
				t.Errorf("the last call returned %v", err)
			}
		})
	}
}
