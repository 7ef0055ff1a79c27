package driver

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// OpenThrough opens a driver behind a proxy. The driver must reach the server, whether the proxy connects to the server
// by TLS or through a unix socket.
func TestCheckedDriverReachesServer(t *testing.T) {
	t.Parallel()
	v, err := withFault(t, "on Redis")
	if err != nil {
		t.Fatal(err)
	}
	cert, key := redistest.Certificate(t)
	free, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	port, socket := strconv.Itoa(free), redistest.Socket(t)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--unixsocket", socket)
	for _, o := range []servers.Options{
		{Address: "rediss://127.0.0.1:" + port + "/2", CAFile: cert, CertFile: cert, KeyFile: key},
		{Address: "unix://" + socket + "?db=2"},
	} {
		o.RunID = "through"
		server, err := servers.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = server.Close(context.WithoutCancel(t.Context())) }()
		nodes, err := server.Clients(t.Context(), "test", 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer nodes[0].Client.Close()
		locker, err := OpenThrough(t.Context(), v, goredis.Config{Nodes: nodes, Prefix: "check:", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = locker.Close() }()
		if err := locker.(strategies.Preparer).Prepare(t.Context(), nil); err != nil {
			t.Fatalf("%s: %v", o.Address, err)
		}
		lease, err := locker.Acquire(t.Context(), "key")
		if err != nil {
			t.Fatalf("%s: %v", o.Address, err)
		}
		if n := nodes[0].Client.DBSize(t.Context()).Val(); n != 1 {
			t.Errorf("%s: %d keys in the database of its address", o.Address, n)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("%s: %v", o.Address, err)
		}
	}
}
