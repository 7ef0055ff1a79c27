package redisson

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Integer returns the integer that a script has answered. The error of a nil answer is redis.Nil. Any other answer is
// an error too, because it must not count as a number such as "not held".
func Integer(reply *redis.Cmd) (int64, error) {
	value, err := reply.Result()
	if err != nil {
		return 0, err
	}
	n, is := value.(int64)
	if !is {
		return 0, Unexpected(value, "an integer")
	}
	return n, nil
}

// Flag is Integer for a script that answers 1 or 0.
func Flag(reply *redis.Cmd) (bool, error) {
	n, err := Integer(reply)
	if err == nil && n != 0 && n != 1 {
		err = Unexpected(n, "1 or 0")
	}
	return n == 1, err
}

// Unexpected returns the error of a script with an unexpected answer. Redis may have executed the script.
func Unexpected(answer any, expected string) error {
	return unexpected{fmt.Errorf("the script answered %#v, want %s", answer, expected)}
}

type unexpected struct{ error }

// MayHaveRun implements the question of package indeterminate: it is always true.
func (unexpected) MayHaveRun() bool { return true }
