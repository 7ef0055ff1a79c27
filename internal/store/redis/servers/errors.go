package servers

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
)

var (
	// ErrUnreachable says that no Redis could be reached or started.
	ErrUnreachable = fmt.Errorf("Redis %w", store.ErrUnreachable)
	// ErrConfig says that what was asked for cannot work on this machine or with
	// this server.
	ErrConfig = store.ErrConfig
)

// refused says that a server answered a command with an error: it is there, but
// does not know the command or does not allow it.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// sentinel is the one that a failed first contact belongs to. A server that answers
// and still will not have us was asked wrongly: password, user, database.
func sentinel(err error) error {
	if errors.Is(err, store.ErrConfig) || errors.Is(err, errNoTLS) || errors.Is(err, errOnlyTLS) {
		return ErrConfig
	}
	if !refused(err) || strings.Contains(err.Error(), "LOADING") || strings.Contains(err.Error(), "max number of clients") {
		return ErrUnreachable
	}
	return ErrConfig
}

// refusals are how the replies begin by which a server says that it will not have
// anybody, or this user, do that now.
var refusals = []string{"NOPERM", "NOAUTH", "OOM", "READONLY", "MISCONF", "LOADING", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN"}

// Refused is the code of the reply by which a server refused, NOPERM for a right that is
// missing; "" for any other error. Scripts put the code into the middle of a sentence.
func Refused(err error) string {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return ""
	}
	text := reply.Error()
	for _, code := range refusals {
		if strings.HasPrefix(text, code+" ") || strings.Contains(text, "-"+code+" ") {
			return code
		}
	}
	if strings.Contains(text, "unknown command") || strings.Contains(text, "Unknown Redis command") {
		return "ERR"
	}
	for _, words := range []string{"has no permissions", "The user executing the script can't"} {
		if strings.Contains(text, words) {
			return "NOPERM"
		}
	}
	return ""
}

// Refused is the same, for who does not know the store.
func (*Server) Refused(err error) string { return Refused(err) }

// Unauthorised says whether that code is of a right that is missing.
func (*Server) Unauthorised(code string) bool { return code == "NOPERM" }
