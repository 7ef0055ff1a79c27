package command_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// shortly are flags of a run that is soon over.
var shortly = []string{
	"-c", "4", "--instances", "2", "--hold", "1ms", "-d", "200ms", "-w", "0s", "--no-baselines", "-q", "-o", "json=",
}

// certified writes the certificate of 127.0.0.1, by which a server and its clients know each other, and its key.
func certified(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lockbench"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	place(t, cert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})), 0o644)
	place(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})), 0o600)
	return cert, key
}

// A run reaches a Redis that asks for the certificates of clients, as redis.conf has it, and for a password that is not
// in the address; and a primary that Sentinels watch.
func TestWaysIn(t *testing.T) {
	t.Parallel()
	cert, key := certified(t)
	free, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(free)
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
		"--user", "alice", "on", ">a@b+c/%41", "~*", "&*", "+@all")
	watched := redistest.StartWatched(t)
	password := filepath.Join(t.TempDir(), "password")
	place(t, password, "a@b+c/%41\n", 0o600)
	encrypted := "rediss://alice@127.0.0.1:" + port
	const strategies = "spin,pubsub,blpop,handoff,redsync"
	for _, test := range []struct {
		name  string
		env   string
		flags []string
		code  int
		says  string
	}{
		{"certificates and a password file", "", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key, "--redis-password-file", password,
		}, command.ExitOK, ""},
		{"a password in a variable", "LOCKBENCH_REDIS_PASSWORD=a@b+c/%41", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key,
		}, command.ExitOK, ""},
		{"redis-cli's variable", "REDISCLI_AUTH=a@b+c/%41", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key,
		}, command.ExitOK, ""},
		{"a Sentinel", "", []string{"-u", "redis+sentinel://" + watched.Sentinel + "/" + redistest.MasterName},
			command.ExitOK, ""},
		{"no certificate", "", []string{"-u", encrypted, "--ca-file", cert, "--redis-password-file", password},
			command.ExitUnreachable, "next: the server asks for a client's certificate"},
		{"no key", "", []string{"-u", encrypted, "--ca-file", cert, "--cert", cert}, command.ExitConfig,
			"--cert and --key belong together"},
		{"certificates without encryption", "", []string{"-u", "127.0.0.1:1", "--cert", cert, "--key", key},
			command.ExitConfig, "--cert and --key are for rediss:// addresses"},
		{"no such password file", "", []string{"-u", encrypted, "--redis-password-file", "nothing"}, command.ExitConfig,
			"--redis-password-file: open nothing: no such file"},
		{"a wrong password", "LOCKBENCH_REDIS_PASSWORD=s3cr3t", []string{
			"-u", encrypted, "--ca-file", cert, "--cert", cert, "--key", key,
		}, command.ExitConfig, "WRONGPASS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			flags := append(append([]string{}, shortly...), "-s", strategies)
			flags[len(shortly)-1] += filepath.Join(t.TempDir(), "report.json")
			p := prepared(t, "lockbench", append(flags, test.flags...)...)
			p.cmd.Env = append(os.Environ(), test.env)
			p.run()
			if code := p.code(); code != strconv.Itoa(test.code) || !strings.Contains(p.said.String(), test.says) {
				t.Errorf("exit code %s, want %d and %q, said:\n%s", code, test.code, test.says, &p.said)
			}
			if strings.Contains(p.said.String(), "s3cr3t") {
				t.Errorf("it said the password:\n%s", &p.said)
			}
		})
	}
}
