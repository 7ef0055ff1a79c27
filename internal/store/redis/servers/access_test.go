package servers

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
)

func TestPasswordAndUser(t *testing.T) {
	p := process(t, "--requirepass", "s3cr3t", "--user", "me", "on", ">p/w@", "~*", "&*", "+@all")
	for _, who := range []string{":s3cr3t@", "me:p%2Fw%40@"} {
		s := open(t, Options{Address: "redis://" + who + p.Addr() + "/1"})
		if text := fmt.Sprintf("%+v", s.Describe()); strings.Contains(text, "s3cr3t") || strings.Contains(text, "p/w") {
			t.Errorf("the description tells the password: %s", text)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for name, who := range map[string]string{"wrong password": ":wr0ng@", "no password": "", "wrong user": "you:wr0ng@"} {
		_, err := Open(t.Context(), Options{Address: "redis://" + who + p.Addr(), RunID: "test"})
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error is %v, want ErrConfig", name, err)
		} else if strings.Contains(err.Error(), "wr0ng") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.Context(), Options{Address: "redis://:s3cr3t@" + p.Addr() + "/99", RunID: "test"}); !errors.Is(err, ErrConfig) {
		t.Errorf("database 99: error is %v, want ErrConfig", err)
	}
}

// A managed Redis may allow its users little beside the data.
func TestWithoutInfo(t *testing.T) {
	p := process(t, "--user", "little", "on", ">pw", "~*", "&*", "+@all",
		"-info", "-config", "-client|list", "-pubsub|channels", "-unlink")
	s := open(t, Options{Address: "redis://little:pw@" + p.Addr()})
	ctx := t.Context()
	if about := s.Describe(); about.Version == "" || about.Mode != "standalone" {
		t.Errorf("version and mode are known from HELLO, got %+v", about)
	}
	r, err := s.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r.Commands != nil || r.BytesIn != nil || r.BytesOut != nil || r.CPU != nil || r.MainCPU != nil {
		t.Errorf("figures that were refused are nil, got %+v", r)
	}
	if r.RoundTrips == 0 || r.ClientBytesOut == 0 || r.ClientBytesIn == 0 {
		t.Errorf("our own counts are there all the same, got %+v", r)
	}
	if limits, err := s.Limits(ctx); err != nil || limits != (store.Limits{}) {
		t.Errorf("limits = %+v, %v", limits, err)
	}
	if n := s.Subscriptions(ctx); n != nil {
		t.Errorf("subscriptions = %d, want nil", *n)
	}
	if err := s.nodes[0].observer.Set(ctx, "mark", "", 0).Err(); err != nil {
		t.Fatal(err)
	}
	left, err := s.Leftovers(ctx, "mark", "nobody")
	if err != nil || len(left.Keys) != 1 {
		t.Errorf("leftovers = %+v, %v", left, err)
	}
	if err := s.Remove(ctx, left.Keys); err != nil {
		t.Errorf("remove without UNLINK: %v", err)
	}
	if n := s.nodes[0].observer.DBSize(ctx).Val(); n != 0 {
		t.Errorf("%d keys left", n)
	}
}

func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	process(t, "--unixsocket", socket)
	s := open(t, Options{Address: "unix://" + socket + "?db=1"})
	if about := s.Describe(); about.Address != socket || about.Network != "unix socket" {
		t.Errorf("description %+v", about)
	}
	nodes, err := s.Clients(t.Context(), "lockbench:test:clients", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes[0].Client.Close()
	r, err := s.Read(t.Context())
	if err != nil || r.Clients < 3 || r.RoundTrips == 0 {
		t.Errorf("reading %+v, %v", r, err)
	}
}
