package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// errStale means that the lease has ended and a later holder has been at the store.
var errStale = errors.New("a later holder of the lock has been here")

// store keeps how many seats are left, with the largest token that it has seen.
type store struct{ client redis.Scripter }

// fenced refuses a token smaller than one it has seen. Reads count too: otherwise a holder whose lease has ended
// could still write between the read and the write of the next one. Tokens are compared as texts: Lua's numbers
// have 53 bits, and tokens of handoff 61.
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
