package servers

import (
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrUnreachable says that no Redis could be reached or started.
	ErrUnreachable = errors.New("Redis unreachable")
	// ErrConfig says that what was asked for cannot work on this machine or with
	// this server.
	ErrConfig = errors.New("bad configuration")
)

// refused says that a server answered a command with an error: it is there, but
// does not know the command or does not allow it.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// kind is the sentinel a failed first contact belongs to. A server that answers
// and still will not have us was asked wrongly: password, user, database.
func kind(err error) error {
	if errors.Is(err, errNoTLS) || errors.Is(err, errOnlyTLS) {
		return ErrConfig
	}
	if !refused(err) || strings.Contains(err.Error(), "LOADING") || strings.Contains(err.Error(), "max number of clients") {
		return ErrUnreachable
	}
	return ErrConfig
}
