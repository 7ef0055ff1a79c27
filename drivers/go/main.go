// Command go is a driver for every strategy of lockbench: -s "exec:go pubsub". It shows what a driver costs. Without a
// name it drives noop, which does nothing.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/goredis"
)

func main() {
	err := serve(cmp.Or(strings.Join(os.Args[1:], " "), "noop"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(list string) error {
	variants, err := strategies.ParseVariants(list)
	if err == nil && len(variants) != 1 {
		err = errors.New("one strategy is needed, such as pubsub or spin:backoff=none")
	}
	if err != nil {
		return err
	}
	return driver.Serve(os.Stdin, os.Stdout, variants[0],
		func(urls []string, clientName string, c strategies.Config) (strategies.Locker, error) {
			config := goredis.Config{Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers}
			for _, url := range urls {
				node, err := dial(url, clientName, c.Callers)
				if err != nil {
					return nil, err
				}
				config.Nodes = append(config.Nodes, node)
			}
			return goredis.Open(variants[0], config)
		})
}

// mostConnections is as workloads.MaxPool.
const mostConnections = 64

// dial opens a client as lockbench does: nothing is retried, and every connection is one that lockbench expects.
func dial(url, clientName string, callers int) (goredis.Node, error) {
	parsed, err := redis.ParseURL(url)
	if err != nil {
		return goredis.Node{}, err
	}
	options := &redis.UniversalOptions{
		Addrs: []string{parsed.Addr}, Username: parsed.Username, Password: parsed.Password, DB: parsed.DB,
		TLSConfig: parsed.TLSConfig, ClientName: clientName, MaxRetries: -1, DialerRetries: 1,
		PoolSize: min(max(callers, 1), mostConnections), PipelinePoolSize: -1, ContextTimeoutEnabled: true,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	return goredis.Node{Client: redis.NewUniversalClient(options), Options: options}, nil
}
