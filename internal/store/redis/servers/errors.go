package servers

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

var (
	// ErrUnreachable reports that no Redis could be reached or started.
	ErrUnreachable = fmt.Errorf("Redis %w", store.ErrUnreachable)
	// ErrConfig reports that the options cannot work on this machine or with this server.
	ErrConfig = store.ErrConfig
)

// refused reports whether err is an error reply of a server. The server is reachable, but does not know the command or
// does not permit it.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// sentinel classifies an error of the first contact with a server as ErrUnreachable or ErrConfig. An error reply means
// that an option, such as the password, is wrong, unless the server is still loading its data or has too many clients.
func sentinel(err error) error {
	if errors.Is(err, store.ErrConfig) {
		return ErrConfig
	}
	if !refused(err) || strings.Contains(err.Error(), "LOADING") ||
		strings.Contains(err.Error(), "max number of clients") {
		return ErrUnreachable
	}
	return ErrConfig
}

const (
	noPermission = "NOPERM" // the error code for a missing right
	unknown      = "ERR"    // stands for a command that the server does not know
)

// refusals are the first words of error replies with which a server refuses commands of this user or, temporarily, of
// all users.
var refusals = []string{
	noPermission, "NOAUTH", "OOM", "READONLY", "MISCONF", "LOADING", "MASTERDOWN", "NOREPLICAS",
	"CLUSTERDOWN",
}

// Refused returns the code of a refusal: NOPERM for a missing right, ERR for an unknown command; "" for any other
// error. In the error of a script the code stands in the middle of the text.
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
		return unknown
	}
	for _, words := range []string{"has no permissions", "The user executing the script can't"} {
		if strings.Contains(text, words) {
			return noPermission
		}
	}
	return ""
}

// Refused calls the function Refused. It implements store.Protocol.
func (*Server) Refused(err error) string { return Refused(err) }

// Unauthorised reports whether a code from Refused means that the user lacks a right.
func (*Server) Unauthorised(code string) bool { return code == noPermission }

// lacks reports whether an error is due to a missing right or to a command that the server does not have.
func lacks(err error) bool {
	code := Refused(err)
	return code == noPermission || code == unknown
}

// These errors name the cause of a failed connection if neither the network error nor the server's reply does.
var (
	errHungUp     = errors.New("the server closed the connection at once") // on first contact
	errTurnedAway = errors.New("the server closes new connections")
	errGreeting   = errors.New("the server refuses the first commands of a connection")
	errEndpoints  = errors.New("the cluster does not announce the addresses of its nodes")
)

// hungUp reports whether an error means that the server closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// causes maps parts of error messages to advice, for errors whose text does not name the next step.
var causes = []struct{ said, next string }{
	{launch.ErrNoImage.Error(), ""}, // advice follows in the error itself, and the registry is no Redis
	{"does not look like a TLS handshake", "the server uses no TLS on that port: " +
		"give the address with redis:// instead of rediss://, or the port that uses TLS"},
	{errHungUp.Error(), "if it uses TLS on that port, give the address with rediss:// instead of redis://, " +
		"and --ca-file for a private certificate; if it accepts no more connections, raise its maxclients; " + behind},
	{errEndpoints.Error(), "set cluster-preferred-endpoint-type on its nodes to ip, or to hostname with " +
		"cluster-announce-hostname"},
	{"certificate signed by unknown authority", "give the authority's certificate with --ca-file FILE.pem"},
	{"certificate required", "the server requires a client certificate: give one with --cert FILE.pem --key FILE.pem, " +
		"or set tls-auth-clients no on the server"},
	{"no such host", "this machine's DNS does not know the name: check its spelling, and that this is the right network"},
	{"server misbehaving", noDNS},
	{"Temporary failure in name resolution", noDNS},
	{errNotWatched.Error(), "give a name that it watches after the hosts: redis+sentinel://HOST,HOST/NAME"},
	{"WRONGPASS", "user or password is wrong: percent-encode special characters, " +
		"and give a user other than default as redis://USER:PASSWORD@host"},
	{"NOAUTH", "the server requires a password: give it as redis://:PASSWORD@host:port or " +
		"redis://USER:PASSWORD@host:port in LOCKBENCH_REDIS, or separately in LOCKBENCH_REDIS_PASSWORD or " +
		"--redis-password-file, where ps does not show it"},
	{"MOVED", "this is a node of a cluster, but lockbench treats it as a single server: " +
		"grant the user +info and +cluster|slots, or give --topology cluster"},
	{"READONLY", "the server is a replica, or has become one: give the primary's address"},
	{"OOM", "the server has used up its maxmemory: raise it, or delete keys; " +
		"lockbench itself needs a few MB"},
	{"max number of clients", "the server accepts no more connections: " + fewerClients},
	{errTurnedAway.Error(), "it may have reached a limit that it does not report: " + fewerClients},
	{"DB index is out of range", "the server has fewer databases: give another number after the address, or none"},
	{"ERR unknown command", "the server does not know this command: undo its renaming (rename-command), or use " +
		"a newer server; " + behind},
	{"'eval", noScripts},
	{"'script", noScripts},
	{"NOPERM", lessRights},
	{"The user executing the script can't", lessRights},
	{"connection refused", "nothing listens there: is the server running, and is the port right?"},
	{"i/o timeout", noAnswer},
	{"deadline exceeded", noAnswer},
	{errGreeting.Error(), "it needs HELLO or AUTH, CLIENT SETNAME, PING, and SELECT for a database other than 0; " +
		behind},
	{": write: broken pipe", disconnected},
	{": read: connection reset by peer", disconnected},
}

const (
	noScripts = "the user may not run scripts: " +
		"grant +eval +evalsha +script|load, or measure a strategy without scripts, such as -s setnx"
	lessRights = "the user lacks a right: lockbench list NAME prints the rights that a strategy needs, " +
		"and lockbench doctor -u URL those that this user lacks"
	fewerClients = "raise maxclients, or use fewer --clients, --instances or a smaller --pool"
	behind       = "if it is a proxy, such as twemproxy, give the address of the Redis behind it"
	disconnected = "the server closed the connection: check that it still runs; at its limit, " + fewerClients
	noDNS        = "this machine's DNS does not answer: check the network, or give a numeric address, which needs no DNS"
	noAnswer     = "the server does not answer: a firewall may drop the packets, the server may be stopped, " +
		"or the port may use another protocol or no TLS"
)

// NextStep returns advice for the text of an error from a server or the network; "" if there is none.
func NextStep(text string) string {
	for _, cause := range causes {
		if strings.Contains(text, cause.said) {
			return cause.next
		}
	}
	return ""
}
