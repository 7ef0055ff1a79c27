package driver

import (
	"crypto/tls"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// mostConnections equals workloads.MaxPool, so a driver in Go has as many connections as a strategy of lockbench.
const mostConnections = 64

// dial opens a client for each server of the request open, with the options that lockbench's own clients have: no
// retries, and no connections or commands that lockbench does not expect.
func dial(q question) (nodes []goredis.Node, err error) {
	for _, url := range q.Redis {
		at, err := redis.ParseURL(url)
		if err == nil && at.TLSConfig != nil {
			err = q.secure(at.TLSConfig)
		}
		if err != nil {
			return nil, err
		}
		options := &redis.UniversalOptions{
			Addrs: []string{at.Addr}, Username: at.Username, Password: at.Password, DB: at.DB,
			TLSConfig: at.TLSConfig, ClientName: q.ClientName, MaxRetries: -1, DialerRetries: 1,
			PoolSize: min(max(q.Callers, 1), mostConnections), PipelinePoolSize: -1, ContextTimeoutEnabled: true,
			DisableIdentity:          true,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		nodes = append(nodes, goredis.Node{Client: redis.NewUniversalClient(options), Options: options})
	}
	return nodes, nil
}

// secure adds the certificates of the request open to a TLS configuration.
func (q question) secure(config *tls.Config) error {
	config.InsecureSkipVerify = q.SkipVerify
	if q.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(q.TLSCert, q.TLSKey)
		if err != nil {
			return err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	if q.TLSCA == "" {
		return nil
	}
	return store.Trust(config, q.TLSCA)
}
