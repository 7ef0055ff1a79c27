package servers

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
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

// The error for a malformed address must not contain the password, wherever in the address it stands.
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
		said := refuses(t, Options{Address: address}, ErrConfig)
		if strings.Contains(said, secret) || strings.Contains(said, "\n") {
			t.Errorf("%s: error repeats it or is not one line: %s", address, said)
		}
	}
}

func TestBadCAFile(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.pem")
	must(t, os.WriteFile(empty, nil, 0o600))
	for _, options := range []Options{
		{Address: "rediss://localhost:1", CAFile: empty + ".missing"},
		{Address: "rediss://localhost:1", CAFile: empty},
		{Address: "redis://localhost:1", CAFile: empty},
	} {
		refuses(t, options, ErrConfig)
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	silent := process(t)
	must(t, silent.Pause(t.Context()))
	for name, address := range map[string]string{
		"nobody listens": "redis://:s3cr3t@127.0.0.1:1",
		"no such socket": "unix://:s3cr3t@/nowhere/redis.sock",
		"silent":         "redis://:s3cr3t@" + silent.Addr(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			if said := refuses(t, Options{Address: address}, ErrUnreachable); strings.Contains(said, "s3cr3t") {
				t.Errorf("error repeats the password: %s", said)
			}
			// Open gives up after 4 s. A client of a run would give up after 10 s, so 9 s tell the two apart.
			if took := time.Since(started); took > 9*time.Second {
				t.Errorf("it took %v to say so", took)
			}
		})
	}
}

// serverThatReplies returns the address of a server that sends the same reply to every command.
func serverThatReplies(t *testing.T, reply string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 4096)
				for {
					n, err := conn.Read(buffer)
					if err != nil {
						return
					}
					for range strings.Count(string(buffer[:n]), "*") {
						_, _ = fmt.Fprintf(conn, "%s\r\n", reply)
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// TestNextSteps checks that NextStep returns the right advice for typical errors of servers and of the network.
func TestNextSteps(t *testing.T) {
	for _, test := range []struct {
		reply, next string
		kind        error
	}{
		{"-LOADING Redis is loading the dataset in memory", "", ErrUnreachable}, // the error itself is enough
		{"-NOAUTH Authentication required.", "requires a password", ErrConfig},
		{"-WRONGPASS invalid username-password pair or user is disabled.", "user or password is wrong", ErrConfig},
		{"-ERR max number of clients reached", "no more connections", ErrUnreachable},
		{"-MOVED 3999 127.0.0.1:6381", "a node of a cluster", ErrConfig},
		{"-ERR no", "the Redis behind it", ErrConfig},
	} {
		said := refuses(t, Options{Address: serverThatReplies(t, test.reply)}, test.kind)
		if next := NextStep(said); !strings.Contains(next, test.next) || (next == "") != (test.next == "") {
			t.Errorf("%s: %s, next %q", test.reply, said, next)
		}
	}
	for said, want := range map[string]string{
		"dial tcp: lookup redis.invalid: no such host":                      "DNS",
		"dial tcp: lookup redis.invalid on 10.0.0.2:53: server misbehaving": "DNS",
		"write tcp 127.0.0.1:1->127.0.0.1:2: write: broken pipe":            "maxclients",
		"read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer": "maxclients",
	} {
		if next := NextStep(said); !strings.Contains(next, want) {
			t.Errorf("%s: next %q", said, next)
		}
	}
	for _, none := range []string{
		"it is Tuesday",
		`unknown command "lits" for "lockbench"`,
		"print: write /dev/stdout: broken pipe",
		// The error is about a registry of images, so NextStep must give no advice about Redis.
		launch.ErrNoImage.Error() + ": lookup registry: no such host",
	} {
		if next := NextStep(none); next != "" {
			t.Errorf("a next step for %s: %s", none, next)
		}
	}
}
