package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// errStale means that the caller's lease has expired and a later holder has used the store.
var errStale = errors.New("the lease has expired: a later holder of the lock has used the store")

// store keeps, for each flight, the number of seats left and the largest fencing token that it has seen.
type store struct{ client redis.Scripter }

// fenced rejects a token that is smaller than the largest it has seen. It also records the tokens of reads: otherwise a
// holder whose lease has expired could still write between the read and the write of the next holder. Tokens are
// compared as strings, because Lua's numbers are exact only up to 53 bits, and handoff's tokens have 61 bits.
var fenced = redis.NewScript(`
local token, seen = ARGV[1], redis.call('hget', KEYS[1], 'token') or ''
if #token < #seen or #token == #seen and token < seen then
	return -1
end
redis.call('hset', KEYS[1], 'token', ARGV[1])
if ARGV[2] then
	redis.call('hset', KEYS[1], 'left', ARGV[2])
end
return tonumber(redis.call('hget', KEYS[1], 'left') or 0)`)

func (s store) read(ctx context.Context, flight string, token int64) (left int, err error) {
	return s.run(ctx, flight, token)
}

func (s store) write(ctx context.Context, flight string, token int64, left int) error {
	_, err := s.run(ctx, flight, token, left)
	return err
}

func (s store) run(ctx context.Context, flight string, args ...any) (int, error) {
	left, err := fenced.Run(ctx, s.client, []string{"flight:" + flight}, args...).Int()
	switch {
	case err != nil:
		return 0, fmt.Errorf("seats of %q: %w", flight, err)
	case left < 0:
		return 0, fmt.Errorf("seats of %q: %w", flight, errStale)
	}
	return left, nil
}
