package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	_ "github.com/lockbench/lockbench/internal/store/redis" // to be told apart
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// refusedWith opens what cannot be opened, in time, and expects to be told why.
func refusedWith(t *testing.T, o store.Options, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
	defer cancel()
	server, err := Store{}.Open(ctx, "mine", o)
	if err == nil {
		_ = server.Close(ctx)
	}
	if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, store.ErrUnreachable) && !errors.Is(err, store.ErrConfig) {
		t.Errorf("%v, want %q", err, want)
	} else if strings.Contains(err.Error(), "secret") {
		t.Errorf("it tells the password: %v", err)
	}
}

func TestNothingThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()
	refusedWith(t, store.Options{Address: "etcd://" + addr}, "nothing listens there")
}

// Without most of its members an etcd answers nothing, whichever of them is asked first, and
// lets nobody in.
func TestNoLeader(t *testing.T) {
	etcd := etcdtest.Start(t, 3)
	etcd.Pause(1)
	etcd.Pause(2)
	t.Cleanup(func() { etcd.Resume(1); etcd.Resume(2) })
	for _, at := range []string{etcd.Endpoints[0], etcd.Endpoints[1] + "," + etcd.Endpoints[0], "me:secret@" + etcd.Endpoints[0]} {
		refusedWith(t, store.Options{Address: "etcd://" + at}, "it has no leader")
	}
}

func TestARedisThere(t *testing.T) {
	t.Parallel()
	refusedWith(t, store.Options{Address: "etcd://" + redistest.Start(t).Addr}, "there is a Redis, and no etcd")
}

// silent accepts and says nothing, as what speaks another protocol may.
func TestSomebodySilentThere(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	refusedWith(t, store.Options{Address: "etcd://" + listener.Addr().String()}, "deadline")
}

func TestPasswords(t *testing.T) {
	theirs := etcdtest.Start(t, 1)
	outside := theirs.Client(t)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(outside.UserAdd(t.Context(), "root", "secret"))
	must(outside.UserGrantRole(t.Context(), "root", "root"))
	must(outside.UserAdd(t.Context(), "poor", "secret"))
	must(outside.AuthEnable(t.Context()))
	at := theirs.Endpoints[0]
	refusedWith(t, store.Options{Address: "etcd://" + at}, "asks for a user")
	refusedWith(t, store.Options{Address: "etcd://root:secretwrong@" + at}, "user or password is wrong")
	refusedWith(t, store.Options{Address: "etcd://poor:secret@" + at}, "the user lacks a right")
	opened(t, store.Options{Address: "etcd://root:secret@" + at})
	t.Setenv("LOCKBENCH_ETCD_USER", "root")
	t.Setenv("LOCKBENCH_ETCD_PASSWORD", "secret")
	server := opened(t, store.Options{Address: "etcd://" + at})
	if _, err := server.Read(t.Context()); err != nil {
		t.Error(err)
	}
	poor := theirs.Config()
	poor.Username, poor.Password = "poor", "secret"
	client, err := clientv3.New(poor)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Put(t.Context(), "key", "")
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

// certificate makes one for this machine, in PEM files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
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
	return write("cert.pem", "CERTIFICATE", signed), write("key.pem", "EC PRIVATE KEY", secret)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	theirs := etcdtest.Start(t, 1, "--cert-file", cert, "--key-file", key)
	at := theirs.Endpoints[0]
	refusedWith(t, store.Options{Address: "etcd://" + at}, "etcds:// instead of etcd://")
	refusedWith(t, store.Options{Address: "etcds://" + at}, "--ca-file")
	server := opened(t, store.Options{Address: "etcds://" + at, CAFile: cert})
	if reading, err := server.Read(t.Context()); err != nil || reading.Commands["Range"] == 0 || !server.Describe().TLS {
		t.Errorf("%+v (%v)", reading, err)
	}
	refusedWith(t, store.Options{Address: "etcds://" + common(t).members[0].endpoint}, "etcd:// instead of etcds://")
}

func TestValidate(t *testing.T) {
	for _, o := range []store.Options{
		{}, {Address: "auto"}, {Address: "process", Topology: "etcd:3"}, {Address: "etcd://a:1,b:2,c:3"}, {Address: "etcds://user:p%40ss@host:2379"},
	} {
		if err := (Store{}).Validate(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for want, o := range map[string]store.Options{
		"--topology":         {Topology: "nodes:3"},
		"etcd:1 or etcd:3":   {Topology: "etcd:2"},
		"--pin":              {Pin: true},
		"address of etcd":    {Address: "etcd://user:secret@host"},
		"the address":        {Address: "http://host:2379"},
		"--ca-file is for":   {Address: "etcd://host:2379", CAFile: "x"},
		"--ca-file: open":    {Address: "etcds://host:2379", CAFile: "no-such-file"},
		"--durability":       {Durability: "some"},
		"percent-encode spe": {Address: "etcd://user:sec%zzret@host:1"},
	} {
		if err := (Store{}).Validate(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
