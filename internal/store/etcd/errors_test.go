package etcd

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
)

// refusedWith opens what cannot be opened, in time, and expects to be told why.
func refusedWith(t *testing.T, o store.Options, want string) {
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
		t.Errorf("it tells the password: %v", err)
	}
}

// Without most of its members an etcd answers nothing, whichever of them is asked first, and
// lets nobody in.
func TestNoLeader(t *testing.T) {
	etcd := etcdtest.Start(t, 3)
	etcd.Pause(1)
	etcd.Pause(2)
	t.Cleanup(func() { etcd.Resume(1); etcd.Resume(2) })
	first, second := etcd.Endpoints[0], etcd.Endpoints[1]
	for _, at := range []string{first, second + "," + first, "me:secret@" + first} {
		refusedWith(t, store.Options{Address: "etcd://" + at}, "it has no leader")
	}
}

// A user may lack rights. One that may only see the keys that begin with lockbench finds what is left among them.
func TestUsers(t *testing.T) {
	theirs := etcdtest.Start(t, 1)
	outside := theirs.Client(t)
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
	must(outside.AuthEnable(t.Context()))
	at := theirs.Endpoints[0]
	refusedWith(t, store.Options{Address: "etcd://" + at}, "asks for a user")
	refusedWith(t, store.Options{Address: "etcd://root:secretwrong@" + at}, "user or password is wrong")
	refusedWith(t, store.Options{Address: "etcd://poor:secret@" + at}, "the user lacks a right")
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
	t.Parallel()
	theirs := etcdtest.Start(t, 1, "--quota-backend-bytes", "1000000")
	outside := theirs.Client(t)
	for range 100 {
		if _, err := outside.Put(t.Context(), "theirs", strings.Repeat("x", 100000)); err != nil {
			break
		}
	}
	refusedWith(t, store.Options{Address: "etcd://" + theirs.Endpoints[0]}, "etcd takes no writes")
}

// certificate makes PEM files of a certificate for this machine.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	pair := server.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", pair.Certificate[0]), write("key.pem", "PRIVATE KEY", secret)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	theirs := etcdtest.Start(t, 1, "--cert-file", cert, "--key-file", key)
	at := theirs.Endpoints[0]
	refusedWith(t, store.Options{Address: "etcd://" + at}, "etcds:// instead of etcd://")
	refusedWith(t, store.Options{Address: "etcds://" + at}, "--ca-file")
	server := opened(t, store.Options{Address: "etcds://" + at, CAFile: cert})
	reading, err := server.Read(t.Context())
	if err != nil || reading.Commands["Range"] == 0 || !server.Describe().TLS {
		t.Errorf("%+v (%v)", reading, err)
	}
	if n, named := reading.Commands[""]; named {
		t.Errorf("%d of what no method has are counted as commands", n)
	}
	refusedWith(t, store.Options{Address: "etcds://" + common(t).to.endpoints[0]}, "etcd:// instead of etcds://")
}
