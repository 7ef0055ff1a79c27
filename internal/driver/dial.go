package driver

import (
	"crypto/tls"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// mostConnections limits the connection pool of a driver in Go. It equals workloads.MaxPool, so that such a driver has
// as many connections as a built-in strategy.
const mostConnections = 64

// dial opens a client for each server in q.Redis. Its options are those of lockbench's own clients: no retries, no
// separate pool for pipelines, and neither CLIENT SETINFO nor CLIENT MAINT_NOTIFICATIONS.
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

// secure applies the TLS settings of q to config. It returns an error if a certificate cannot be loaded.
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
