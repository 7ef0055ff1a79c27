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
	// ErrConfig says that the request cannot work on this machine or with this server.
	ErrConfig = store.ErrConfig
)

// refused says whether a server answered a command with an error: it is reachable, but does not
// know the command or does not allow it.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// sentinel returns the error class of a failed first contact. A server that answers and refuses
// means wrong options: password, user or database.
func sentinel(err error) error {
	if errors.Is(err, store.ErrConfig) || errors.Is(err, errNoTLS) || errors.Is(err, errOnlyTLS) {
		return ErrConfig
	}
	if !refused(err) || strings.Contains(err.Error(), "LOADING") || strings.Contains(err.Error(), "max number of clients") {
		return ErrUnreachable
	}
	return ErrConfig
}

// refusals are the first words of replies with which a server refuses a command at present, to
// everyone or to this user.
var refusals = []string{"NOPERM", "NOAUTH", "OOM", "READONLY", "MISCONF", "LOADING", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN"}

// Refused returns the code of a refusal, NOPERM for a missing right; "" for any other error. In a
// script's error the code is inside the sentence.
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

// Refused is the function Refused as a method of store.Protocol.
func (*Server) Refused(err error) string { return Refused(err) }

// Unauthorised says whether that code means a missing right.
func (*Server) Unauthorised(code string) bool { return code == "NOPERM" }
