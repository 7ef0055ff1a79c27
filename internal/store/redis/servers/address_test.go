package servers

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseAddress(t *testing.T) {
	for _, test := range []struct {
		address, addr, user, password string
		db                            int
		tls                           bool
	}{
		{address: "localhost:6380", addr: "localhost:6380"},
		{address: "[::1]:6380", addr: "[::1]:6380"},
		{address: "redis://localhost", addr: "localhost:6379"},
		{address: "redis://me:p%2Fw@db.example:1/3", addr: "db.example:1", user: "me", password: "p/w", db: 3},
		{address: "rediss://:pw@db.example", addr: "db.example:6379", password: "pw", tls: true},
		{address: "unix://:pw@/run/redis.sock?db=2", addr: "/run/redis.sock", password: "pw", db: 2},
	} {
		got, err := parseAddress(test.address)
		if err != nil {
			t.Errorf("%s: %v", test.address, err)
			continue
		}
		if got.Addrs[0] != test.addr || got.Username != test.user || got.Password != test.password ||
			got.DB != test.db || (got.TLSConfig != nil) != test.tls {
			t.Errorf("%s: %+v", test.address, got)
		}
	}
}

// Whatever is wrong with an address, and wherever that leaves the password, it
// is not repeated.
func TestBadAddressKeepsPassword(t *testing.T) {
	const secret = "s3cr3t"
	for _, address := range []string{
		"redis://me:" + secret + "/x@localhost:1",
		"redis://me:12/" + secret + "@localhost:1",
		"redis://me:12?" + secret + "@localhost:1",
		"redis://me:12#" + secret + "@localhost:1",
		"redis://:" + secret + "@localhost:port",
		"redis://:" + secret + "%zz@localhost:1",
		"redis://localhost/" + secret,
		"redis://localhost/1/" + secret,
		"redis://localhost?" + secret + "=1",
		"redis://localhost?db=" + secret,
		"unix://:" + secret + "@",
		"http://:" + secret + "@localhost:1",
		"me:" + secret + "@localhost:1",
		":" + secret + "@localhost:1",
		secret,
	} {
		_, err := Open(t.Context(), Options{Address: address})
		switch {
		case !errors.Is(err, ErrConfig):
			t.Errorf("%s: error is %v, want ErrConfig", address, err)
		case strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: error repeats it or is not one line: %v", address, err)
		}
	}
}

func TestBadCAFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, options := range []Options{
		{Address: "rediss://localhost:1", CAFile: empty + ".missing"},
		{Address: "rediss://localhost:1", CAFile: empty},
		{Address: "redis://localhost:1", CAFile: empty},
	} {
		if _, err := Open(t.Context(), options); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v, want ErrConfig", options, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	silent := process(t)
	if err := silent.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{
		"nobody listens": "redis://:s3cr3t@127.0.0.1:1",
		"no such socket": "unix://:s3cr3t@/nowhere/redis.sock",
		"silent":         "redis://:s3cr3t@" + silent.Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			_, err := Open(t.Context(), Options{Address: address, RunID: "test"})
			if !errors.Is(err, ErrUnreachable) {
				t.Errorf("error is %v, want ErrUnreachable", err)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error repeats the password: %v", err)
			}
			// It waits for 4 s; a client that waited as in a run would take 10.
			if took := time.Since(started); took > 9*time.Second {
				t.Errorf("it took %v to say so", took)
			}
		})
	}
}
