package etcd_test

import (
	"context"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	etcdstore "github.com/lockbench/lockbench/internal/store/etcd"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/etcd"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := start(t)
	rounds := 5
	if extent.Thorough() {
		rounds = 0
	}
	each(t, func(t *testing.T, options etcd.Options) {
		t.Parallel() // they wait most of the time
		info := options.Refine(etcd.Strategy().Info)
		info.BlackBox = false // see counted
		locktest.Run(t, func(t *testing.T) locktest.Fixture {
			clients := dialler(t, server)
			return locktest.Fixture{Rounds: rounds, Open: func(c goredis.Config) (strategies.Locker, error) {
				return etcd.Open(etcd.Config{
					Nodes: []*clientv3.Client{clients(c.Probe)}, Prefix: c.Prefix, TTL: c.TTL, Callers: c.Callers,
				}, options)
			}}
		}, info)
	})
}

// dialler returns a function that makes clients in a separate goroutine. The suite counts goroutines by their creators.
// It must not count those of a client, because they outlive the Locker that uses the client.
func dialler(t *testing.T, server *etcdstore.Server) func(*strategies.Probe) *clientv3.Client {
	wanted, made := make(chan *strategies.Probe), make(chan *clientv3.Client)
	var done sync.WaitGroup
	done.Go(func() {
		for probe := range wanted {
			config := config(server)
			config.DialOptions = append(config.DialOptions, grpc.WithChainUnaryInterceptor(counted(probe)))
			client, err := clientv3.New(config)
			if err != nil {
				t.Error(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			warm(t, client)
			made <- client
		}
	})
	t.Cleanup(func() { close(wanted); done.Wait() })
	return func(probe *strategies.Probe) *clientv3.Client { wanted <- probe; return <-made }
}

// counted returns an interceptor that counts each transaction as an attempt once the transaction's call has returned.
// From this count, the suite knows when a caller is in the queue.
func counted(probe *strategies.Probe) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption,
	) error {
		err := invoke(ctx, method, request, reply, conn, options...)
		if method == "/etcdserverpb.KV/Txn" {
			probe.Attempt()
		}
		return err
	}
}

// warm makes a client open its streams for renewals and watches before the suite counts goroutines. The client keeps
// these streams open.
func warm(t *testing.T, client *clientv3.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	lease, err := client.Grant(ctx, 60)
	if err != nil {
		t.Error(err)
		return
	}
	alive, err := client.KeepAlive(ctx, lease.ID)
	if err != nil {
		t.Error(err)
		return
	}
	<-alive
	client.Watch(client.Ctx(), "nothing")
	if _, err := client.Revoke(ctx, lease.ID); err != nil {
		t.Error(err)
	}
}
