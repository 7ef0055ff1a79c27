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
	// ErrConfig reports that the request cannot work on this machine or with this server.
	ErrConfig = store.ErrConfig
)

// refused reports whether a server answered a command with an error: it is reachable, but does not know the command
// or does not allow it.
func refused(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// sentinel returns the error class of a failed first contact. A server that answers and refuses
// means wrong options: password, user or database.
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
	noPermission = "NOPERM" // the code of a missing right
	unknown      = "ERR"    // stands for a command that the server does not know
)

// refusals are the first words of replies with which a server refuses a command at present, to
// everyone or to this user.
var refusals = []string{
	noPermission, "NOAUTH", "OOM", "READONLY", "MISCONF", "LOADING", "MASTERDOWN", "NOREPLICAS",
	"CLUSTERDOWN",
}

// Refused returns the code of a refusal, NOPERM for a missing right, ERR for an unknown command; "" for any other
// error. In a script's error the code is inside the sentence.
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

// Refused is the function Refused as a method of store.Protocol.
func (*Server) Refused(err error) string { return Refused(err) }

// Unauthorised reports whether that code means a missing right.
func (*Server) Unauthorised(code string) bool { return code == noPermission }

// lacks reports whether an error is due to a missing right, or to a command that the server does not have.
func lacks(err error) bool {
	code := Refused(err)
	return code == noPermission || code == unknown
}

// These say why a connection failed, where neither the network nor the server names a cause.
var (
	errHungUp     = errors.New("the server hung up") // on the first contact
	errTurnedAway = errors.New("the server closes new connections")
	errGreeting   = errors.New("the server refuses the first commands of a connection")
	errEndpoints  = errors.New("the cluster does not name the addresses of its nodes")
)

// hungUp reports whether a server closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// causes maps parts of error messages to advice, where the server's own words do not say what to change here.
var causes = []struct{ said, next string }{
	{launch.ErrNoImage.Error(), ""}, // the error is the registry's, and followed by advice
	{"does not look like a TLS handshake", "the server speaks no TLS at that port: " +
		"give the address with redis:// instead of rediss://, or the port that speaks TLS"},
	{errHungUp.Error(), "if it speaks TLS at that port, give the address with rediss:// instead of redis://, " +
		"with --ca-file for a certificate of your own; if it takes no more connections, raise its maxclients; " + behind},
	{errEndpoints.Error(), "set cluster-preferred-endpoint-type there to ip, or to hostname with " +
		"cluster-announce-hostname"},
	{"certificate signed by unknown authority", "have the server's certificate trusted with --ca-file FILE.pem"},
	{"certificate required", "the server asks for a client's certificate: give it with --cert FILE.pem --key FILE.pem, " +
		"or set tls-auth-clients no there"},
	{"no such host", "the name is not known to this machine's DNS: is it spelt right, and is this its network?"},
	{"server misbehaving", noDNS},
	{"Temporary failure in name resolution", noDNS},
	{errNotWatched.Error(), "give one of these names after the hosts: redis+sentinel://HOST,HOST/NAME"},
	{"WRONGPASS", "user or password is wrong: percent-encode special characters, " +
		"and give a user other than default as redis://USER:PASSWORD@host"},
	{"NOAUTH", "the server asks for a password: give it as redis://:PASSWORD@host:port or " +
		"redis://USER:PASSWORD@host:port in LOCKBENCH_REDIS, or apart in LOCKBENCH_REDIS_PASSWORD or " +
		"--redis-password-file, where ps does not show it"},
	{"MOVED", "this is a node of a cluster, and was taken for a single server: " +
		"allow the user +info and +cluster|slots, or give --topology cluster"},
	{"READONLY", "this is a replica, or became one: give the primary's address"},
	{"OOM", "the server has used up its maxmemory: raise it, or delete what is not needed; " +
		"lockbench itself needs a few MB"},
	{"max number of clients", "the server takes no more connections: " + fewerClients},
	{errTurnedAway.Error(), "perhaps it takes no more, and does not report its limit: " + fewerClients},
	{"DB index is out of range", "the server has fewer databases: give another number after the address, or none"},
	{"ERR unknown command", "the server does not know this command: give it its own name again (rename-command), or use " +
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
		"allow +eval +evalsha +script|load, or measure what needs none, such as -s setnx"
	lessRights = "the user lacks a right: lockbench list NAME prints all that a strategy needs, " +
		"lockbench doctor -u URL what this user lacks"
	fewerClients = "raise maxclients, or use fewer --clients, --instances or a smaller --pool"
	behind       = "if it is a proxy, such as twemproxy, give the address of the Redis behind it"
	disconnected = "the server closed the connection: does it still run? If it takes no more of them, " + fewerClients
	noDNS        = "this machine's DNS does not answer: is this the right network? An address in digits needs no DNS"
	noAnswer     = "there is no answer: does a firewall drop it, is the server stopped, " +
		"or does the port speak another protocol, such as no TLS?"
)

// NextStep returns advice for an error of a server or of the network; "" if there is none.
func NextStep(text string) string {
	for _, cause := range causes {
		if strings.Contains(text, cause.said) {
			return cause.next
		}
	}
	return ""
}
