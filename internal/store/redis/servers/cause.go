package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// errNoTLS and errOnlyTLS say why a first contact failed.
var (
	errNoTLS   = errors.New("the server speaks no TLS at that port")
	errOnlyTLS = errors.New("the server speaks TLS at that port, and nothing else")
)

// causes maps parts of error messages to advice. The most specific parts come first.
var causes = []struct{ said, next string }{
	{launch.ErrNoImage.Error(), ""}, // the error is the registry's, and followed by advice
	{errNoTLS.Error(), "give the address with redis:// instead of rediss://, or the port that speaks TLS"},
	{errOnlyTLS.Error(), "give the address with rediss:// instead of redis://, with --ca-file for a certificate of your own"},
	{"certificate signed by unknown authority", "have the server's certificate trusted with --ca-file FILE.pem"},
	{"cannot validate certificate", "use a host name that the certificate is for"},
	{"WRONGPASS", "user or password is wrong: percent-encode special characters, and give a user other than default as redis://USER:PASSWORD@host"},
	{"NOAUTH", "the server asks for a password: give it as redis://:PASSWORD@host:port or redis://USER:PASSWORD@host:port, in LOCKBENCH_REDIS, where ps does not show it"},
	{"protected mode", "the server takes no strangers without a password: give one, or have the server listen on this machine's address only"},
	{"MOVED", "this is a node of a cluster, and was taken for a single server: allow the user +info and +cluster|slots, or give --topology cluster"},
	{"CLUSTERDOWN", "the cluster does not serve all slots: look at CLUSTER INFO on its nodes"},
	{"MASTERDOWN", "this is a replica that has lost its primary: give the primary's address, or wait for the failover to end"},
	{"READONLY", "this is a replica, or became one: give the primary's address"},
	{"LOADING", "the server reads its data from disk: wait until INFO persistence says loading:0"},
	{"OOM", "the server has used up its maxmemory: raise it, or delete what is not needed; lockbench itself needs a few MB"},
	{"MISCONF", "the server takes no writes because it cannot save to disk: look at its log, or set stop-writes-on-bgsave-error no"},
	{"NOREPLICAS", "the server takes no writes with so few replicas: look at min-replicas-to-write"},
	{"max number of clients", "the server takes no more connections: raise maxclients, or use fewer --clients, --instances or a smaller --pool"},
	{"'evalsha' command", noScripts}, {"'eval' command", noScripts}, {"'script|load' command", noScripts}, {"'script' command", noScripts},
	{"unknown command 'eval", noScripts}, {"unknown command 'script", noScripts}, {"unknown command 'EVAL", noScripts}, {"unknown command 'SCRIPT", noScripts},
	{"NOPERM", lessRights}, {"The user executing the script can't", lessRights},
	{"no such host", "the name is not known: look for a typing error, or give an IP address"},
	{"connection refused", "nothing listens there: is the server running, and is the port right?"},
	{"i/o timeout", noAnswer}, {"deadline exceeded", noAnswer},
}

const (
	noScripts  = "the user may not run scripts: allow +eval +evalsha +script|load, or measure what needs none, such as -s setnx"
	lessRights = "the user lacks a right: lockbench list NAME prints all that a strategy needs, lockbench doctor -u URL what this user lacks"
	noAnswer   = "there is no answer: does a firewall drop it, is the server stopped, or does the port speak another protocol?"
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

// probeLimit bounds a second attempt at a port.
const probeLimit = time.Second

// mismatched returns an error that says so if only one side uses TLS, or another store answers;
// else it returns err unchanged.
func (n *node) mismatched(ctx context.Context, err error) error {
	if refused(err) || strings.HasPrefix(n.addr(), "/") || errors.Is(ctx.Err(), context.Canceled) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeLimit)
	defer cancel()
	switch encrypted := n.options.TLSConfig != nil; {
	case encrypted && Speaks(ctx, n.addr()):
		return fmt.Errorf("%w: %w", errNoTLS, err)
	case !encrypted && store.SpeaksTLS(ctx, n.addr()):
		if stranger := store.Stranger(ctx, n.addr(), store.Redis); stranger != nil {
			return stranger
		}
		return fmt.Errorf("%w: %w", errOnlyTLS, err)
	}
	if stranger := store.Stranger(ctx, n.addr(), store.Redis); stranger != nil {
		return stranger
	}
	return err
}
