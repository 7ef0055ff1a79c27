package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// connected is the prefix of keys that stand for connections on a user's etcd, which has no names for
// connections: connected/NAME/LEASE.
const connected = "lockbench/connected/"

// presenceSeconds is how long a killed lockbench still counts as connected.
const presenceSeconds = 10

// presence is a key that exists as long as its connection.
type presence struct {
	client *clientv3.Client
	lease  clientv3.LeaseID
	stop   context.CancelFunc
	fed    sync.WaitGroup
}

// announce creates the key for a name.
func announce(ctx context.Context, client *clientv3.Client, name string) (*presence, error) {
	granted, err := client.Grant(ctx, presenceSeconds)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(client.Ctx())
	p := &presence{client: client, lease: granted.ID, stop: stop}
	if _, err = client.Put(ctx, fmt.Sprintf("%s%s/%x", connected, name, granted.ID), "", clientv3.WithLease(granted.ID)); err != nil {
		p.end()
		return nil, err
	}
	alive, err := client.KeepAlive(life, granted.ID)
	if err != nil {
		p.end()
		return nil, err
	}
	p.fed.Go(func() {
		for range alive { // the answers are not needed
		}
	})
	return p, nil
}

// end removes the key, or leaves it to its TTL.
func (p *presence) end() {
	p.stop()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, _ = p.client.Revoke(ctx, p.lease)
	p.fed.Wait()
}

// Connected lists the names of connections with this prefix, each once. It returns none if lockbench
// started etcd, because then there are no others.
func (s *Server) Connected(ctx context.Context, prefix string) ([]string, error) {
	if s.present == nil {
		return nil, nil
	}
	answer, err := s.client.Get(ctx, connected+prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return nil, fmt.Errorf("list who is connected: %w", err)
	}
	var names []string
	for _, kv := range answer.Kvs {
		name := strings.TrimPrefix(string(kv.Key), connected)
		names = append(names, name[:strings.LastIndex(name, "/")])
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
