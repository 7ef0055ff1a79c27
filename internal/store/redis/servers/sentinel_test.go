package servers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// TestSentinelsNameThePrimary opens a server by the addresses of its Sentinels, the first of which is unreachable.
// Clients must reach the primary, also after a failover.
func TestSentinelsNameThePrimary(t *testing.T) {
	t.Parallel()
	watched := redistest.StartWatched(t)
	const unreachable = "127.0.0.1:1" // the next Sentinel must answer
	for _, address := range []string{
		"redis+sentinel://" + unreachable + "," + watched.Sentinel + "/" + redistest.MasterName,
		"redis://" + unreachable + "?master_name=" + redistest.MasterName + "&addr=" + watched.Sentinel,
	} {
		server, err := servers.Open(t.Context(), servers.Options{Address: address, RunID: "sentinel"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = server.Close(context.Background()) })
		if got := server.Describe(); got.Address != watched.Servers[0].Addr || got.Topology != "single" {
			t.Errorf("%s is %s, %s", address, got.Address, got.Topology)
		}
	}
	server, err := servers.Open(t.Context(), servers.Options{
		Address: "redis+sentinel://" + watched.Sentinel + "/" + redistest.MasterName, RunID: "failover",
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	before, err := server.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watched.Failover()
	poll.Until(t, "the new primary takes writes", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		nodes, err := server.Clients(ctx, "test", 1, nil)
		if err != nil {
			return false
		}
		defer nodes[0].Client.Close()
		if at, _ := nodes[0].Reach(); at.URL != "redis://"+watched.Servers[1].Addr {
			t.Errorf("a driver gets the address %s", at.URL)
		}
		return nodes[0].Client.Set(ctx, "lockbench:{after}", 1, time.Minute).Err() == nil
	})
	if n := watched.Nodes[1].Exists(t.Context(), "lockbench:{after}").Val(); n != 1 {
		t.Error("the key is not at the new primary")
	}
	poll.Until(t, "the observer reads the new primary", func() bool {
		after, err := server.Read(t.Context())
		return err == nil && after.Restarts+after.RoleChanges > before.Restarts+before.RoleChanges
	})
}

// The error for a malformed Sentinel address must name the mistake and contain no password.
func TestBadSentinels(t *testing.T) {
	t.Parallel()
	watched := redistest.StartWatched(t)
	const secret = "s3cr3t"
	for _, test := range []struct {
		address, says string
		reason        error
	}{
		{"redis+sentinel://" + watched.Sentinel + "/other", "it watches lock", servers.ErrConfig},
		{"redis+sentinel://" + watched.Sentinel, "for a primary that Sentinels watch", servers.ErrConfig},
		{"redis+sentinel://127.0.0.1:1,127.0.0.1:2/lock", "127.0.0.1:2 for the primary lock", servers.ErrUnreachable},
		{"redis+sentinel://:" + secret + "/x@" + watched.Sentinel + "/lock", "", servers.ErrConfig},
		{"redis+sentinel://:" + secret + "@" + watched.Sentinel + "/lock/" + secret, "", servers.ErrConfig},
		{"redis://" + watched.Sentinel + "?master_name=lock&pool_size=3", "may have only the options", servers.ErrConfig},
		{watched.Sentinel, "give redis+sentinel://" + watched.Sentinel + "/PRIMARY", servers.ErrConfig},
	} {
		server, err := servers.Open(t.Context(), servers.Options{Address: test.address, RunID: "bad"})
		if err == nil {
			_ = server.Close(context.Background())
			t.Errorf("%s opened", test.address)
			continue
		}
		said := err.Error()
		if !errors.Is(err, test.reason) || !strings.Contains(said, test.says) || strings.Contains(said, secret) {
			t.Errorf("%s: %v", test.address, err)
		}
	}
}
