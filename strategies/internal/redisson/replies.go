package redisson

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Integer returns the integer in the reply of a script. For a nil reply the error is redis.Nil. Any other reply is an
// error too, because it must not be taken for a number that means, for example, "not held".
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

// Flag reports whether a script returned 1. A reply other than 1 or 0 is an error.
func Flag(reply *redis.Cmd) (bool, error) {
	n, err := Integer(reply)
	if err == nil && n != 0 && n != 1 {
		err = Unexpected(n, "1 or 0")
	}
	return n == 1, err
}

// Unexpected returns the error for a reply that the script cannot return. indeterminate.MayHaveRun is true for it,
// because Redis may have executed the script.
func Unexpected(answer any, expected string) error {
	return unexpected{fmt.Errorf("the script returned %#v instead of %s", answer, expected)}
}

type unexpected struct{ error }

// MayHaveRun returns true, because Redis may have executed the script. The function indeterminate.MayHaveRun calls this
// method.
func (unexpected) MayHaveRun() bool { return true }
