package etcd

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

// refusedWith opens an etcd with the options o and returns the error, which must be a known kind, contain want and not
// contain the password. Open must return within drive.Bound.
func refusedWith(t *testing.T, o store.Options, want string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	server, err := Store().Open(ctx, "mine", o)
	if err == nil {
		_ = server.Close(ctx)
	}
	known := errors.Is(err, store.ErrUnreachable) || errors.Is(err, store.ErrConfig)
	if !known || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	} else if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is in %v", err)
	}
	return err
}

// TestNoLeader pauses two of three members. Open must report that etcd has no leader, whichever member gets the first
// request, with and without a login.
func TestNoLeader(t *testing.T) {
	etcd := opened(t, store.Options{Topology: "etcd:3"})
	most := etcd.Own[1:]
	if err := launch.Each(t.Context(), most, launch.Started.Pause); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = launch.Each(context.Background(), most, launch.Started.Resume) })
	poll.Until(t, "they have stopped", func() bool { return readFromMajority(t.Context(), etcd.client) != nil })
	first, second := etcd.to.endpoints[0], etcd.to.endpoints[1]
	for _, at := range []string{first, second + "," + first, "me:secret@" + first} {
		_ = refusedWith(t, store.Options{Address: "etcd://" + at}, "it has no leader")
	}
}

// TestUsers opens an etcd that requires a user. The error must say that the user is missing, that the user or password
// is wrong, or that the user lacks a right. The user "few" may access only keys that begin with lockbench, and
// Leftovers must still work for this user.
func TestUsers(t *testing.T) {
	theirs := opened(t, store.Options{})
	outside := theirs.client
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, user := range []string{"root", "few", "poor"} {
		must(outside.UserAdd(t.Context(), user, "secret"))
	}
	must(outside.UserGrantRole(t.Context(), "root", "root"))
	must(outside.RoleAdd(t.Context(), "ours"))
	both := clientv3.PermissionType(clientv3.PermReadWrite)
	must(outside.RoleGrantPermission(t.Context(), "ours", "lockbench", clientv3.GetPrefixRangeEnd("lockbench"), both))
	must(outside.UserGrantRole(t.Context(), "few", "ours"))
	at := theirs.to.endpoints[0]
	refuses := func(user, want string) {
		t.Helper()
		err := refusedWith(t, store.Options{Address: "etcd://" + user + at}, want)
		if errors.Is(err, store.ErrUnreachable) { // etcd has answered
			t.Errorf("%v counts as unreachable", err)
		}
	}
	must(outside.AuthEnable(t.Context()))
	refuses("", "requires a user")
	refuses("root:secretwrong@", "user or password is wrong")
	refuses("poor:secret@", "the user lacks a right")
	t.Setenv("LOCKBENCH_ETCD_USER", "few")
	t.Setenv("LOCKBENCH_ETCD_PASSWORD", "secret")
	server := opened(t, store.Options{Address: "etcd://" + at})
	const key = "lockbench:{mine:1:0}/1"
	must(server.client.Put(t.Context(), key, ""))
	left, err := server.Leftovers(t.Context(), "{mine:1:", "")
	if err != nil || !slices.Equal(left.Keys, []string{key}) {
		t.Errorf("%v, %v", left.Keys, err)
	}
	_, err = server.client.Put(t.Context(), "key", "")
	if code := server.Refused(err); code != "PermissionDenied" || !server.Unauthorised(code) {
		t.Errorf("%v is %q", err, code)
	}
}

func TestNoSpace(t *testing.T) {
	t.Setenv("ETCD_QUOTA_BACKEND_BYTES", "1000000")
	theirs := opened(t, store.Options{})
	for range 100 {
		if _, err := theirs.client.Put(t.Context(), "theirs", strings.Repeat("x", 100000)); err != nil {
			break
		}
	}
	_ = refusedWith(t, store.Options{Address: "etcd://" + theirs.to.endpoints[0]}, "etcd accepts no writes")
}

// secured starts a TLS proxy for the etcd at this address. It returns the proxy's address and the name of its
// certificate file.
func secured(t *testing.T, etcd string) (addr, cert string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	config := server.TLS.Clone()
	config.NextProtos = []string{"h2"}
	addr = drive.Serve(t, func(conn net.Conn) {
		theirs := tls.Server(conn, config)
		if theirs.Handshake() != nil {
			return
		}
		ours, err := net.Dial("tcp", etcd)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(ours, theirs); _ = ours.Close() }()
		_, _ = io.Copy(theirs, ours)
	})
	cert = filepath.Join(t.TempDir(), "cert.pem")
	pair := &pem.Block{Type: "CERTIFICATE", Bytes: config.Certificates[0].Certificate[0]}
	if err := os.WriteFile(cert, pem.EncodeToMemory(pair), 0o600); err != nil {
		t.Fatal(err)
	}
	return addr, cert
}

func TestTLS(t *testing.T) {
	t.Parallel()
	plain := opened(t, store.Options{}).to.endpoints[0]
	at, cert := secured(t, plain)
	_ = refusedWith(t, store.Options{Address: "etcd://" + at}, "etcds:// instead of etcd://")
	_ = refusedWith(t, store.Options{Address: "etcds://" + at}, "--ca-file")
	server := opened(t, store.Options{Address: "etcds://" + at, CAFile: cert})
	reading, err := server.Read(t.Context())
	if err != nil || reading.Commands["Range"] == 0 || !server.Describe().TLS {
		t.Errorf("%+v (%v)", reading, err)
	}
	if n, named := reading.Commands[""]; named {
		t.Errorf("%d of what no method has are counted as commands", n)
	}
	_ = refusedWith(t, store.Options{Address: "etcds://" + plain}, "etcd:// instead of etcds://")
}
