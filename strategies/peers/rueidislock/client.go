package rueidislock

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// usualDialTimeout is go-redis's.
const usualDialTimeout = 5 * time.Second

// line is how a rueidis client connects to a node: with the name, the rights and the dialler
// of the node's own client, so that what it sends is counted too.
type line struct {
	option rueidis.ClientOption
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	isCut  atomic.Bool
}

func newLine(o *redis.UniversalOptions) (*line, error) {
	if o == nil {
		return nil, errors.New("the node has no options to dial with")
	}
	if o.MasterName != "" {
		return nil, errors.New("a client by way of Sentinel is not supported")
	}
	if len(o.Addrs) == 0 {
		return nil, errors.New("the node has no address")
	}
	l := &line{dial: o.Dialer}
	if l.dial == nil {
		simple := o.Simple()
		if simple.DialTimeout == 0 {
			simple.DialTimeout = usualDialTimeout
		}
		l.dial = redis.NewDialer(simple)
	}
	l.option = rueidis.ClientOption{
		InitAddress:       o.Addrs,
		ForceSingleClient: !o.IsClusterMode,
		Username:          o.Username,
		Password:          o.Password,
		ClientName:        o.ClientName,
		SelectDB:          o.DB,
		Dialer:            net.Dialer{Timeout: o.DialTimeout},
		DialCtxFn:         l.connect,
	}
	if o.DisableIdentity {
		l.option.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	return l, nil
}

// connect dials. The dialler itself encrypts if the options say so.
func (l *line) connect(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
	if l.isCut.Load() {
		return nil, net.ErrClosed
	}
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	return l.dial(ctx, network, address)
}

// cut refuses further connections: a closed rueidis client dials again when it is called with
// a context that has ended.
func (l *line) cut() { l.isCut.Store(true) }
