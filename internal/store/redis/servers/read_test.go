package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
)

// Without other clients, the traffic at lockbench's sockets must equal that which Redis counts, with and without TLS.
// If only one side uses TLS, NextStep must say so.
func TestCountsAgree(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	p, port := processWithTLS(t, cert, key)
	plain, encrypted := p.Addr(), fmt.Sprintf("127.0.0.1:%d", port)
	t.Run("plain", func(t *testing.T) { countsAgree(t, open(t, Options{Address: plain}), plain) })
	t.Run("TLS", func(t *testing.T) {
		s := open(t, Options{Address: "rediss://" + encrypted, CAFile: cert})
		if !s.Describe().TLS {
			t.Error("the description does not say TLS")
		}
		countsAgree(t, s, plain)
	})
	for address, want := range map[string]string{
		"rediss://" + plain:     "no TLS",
		"redis://" + encrypted:  "give the address with rediss://",
		"rediss://" + encrypted: "--ca-file", // an unknown authority signed the certificate
	} {
		said := refuses(t, Options{Address: address}, ErrUnreachable)
		t.Log(said)
		if next := NextStep(said); !strings.Contains(next, want) {
			t.Errorf("%s: next step %q", address, next)
		}
	}
}

// processWithTLS starts a server without TLS, which also accepts TLS at the returned port. cert and key are file names.
func processWithTLS(t *testing.T, cert, key string) (p *Own, port int) {
	t.Helper()
	of := Options{}.fleet(single{}, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	of.Ports = launch.FreePorts(2)
	plain := of.Server
	of.Server = func(place int, ports [][]int) launch.Definition {
		server := plain(place, ports)
		args := server.Args
		port = ports[0][1]
		server.Args = func(at launch.Location) []string { return append(args(at), "--tls-port", fmt.Sprint(port)) }
		return server
	}
	return begin(t, of), port
}

func countsAgree(t *testing.T, s *Server, plain string) {
	t.Helper()
	ctx := t.Context()
	before := readOf(t, s)
	client := clientsOf(t, s, 3)[0].Client
	const loops = 100
	for range loops {
		must(t, client.Set(ctx, "k", "value", 0).Err())
	}
	_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for range loops {
			pipe.Get(ctx, "k")
		}
		return nil
	})
	must(t, err)
	d := readOf(t, s).Since(before, loops)
	if d.Commands["set"] != loops || d.Commands["get"] != loops || *d.Calls < 2*loops {
		t.Errorf("commands = %v", d.Commands)
	}
	// The round trips are the SETs, one pipeline, one INFO, and for each of 3 connections HELLO, CLIENT SETNAME and PING.
	if want := int64(loops + 1 + 1 + 3*3); *d.RoundTrips != want {
		t.Errorf("%d round trips, want %d", *d.RoundTrips, want)
	}
	if *d.BytesIn != *d.ClientBytesOut || *d.OtherTraffic != 0 {
		t.Errorf("Redis received %d bytes, we sent %d, foreign %v %%", *d.BytesIn, *d.ClientBytesOut, *d.OtherTraffic)
	}
	// Redis counts the reply to INFO only after it has taken the reading. The difference between two readings thus
	// includes the reply to the first INFO but not the reply to the second.
	if diff := *d.ClientBytesIn - *d.BytesOut; diff < -4096 || diff > 4096 {
		t.Errorf("Redis sent %d bytes, we received %d", *d.BytesOut, *d.ClientBytesIn)
	}
	if d.CPU == nil || d.MainCPU == nil || *d.CPU < *d.MainCPU*0.5 {
		t.Errorf("CPU = %v, main thread %v", d.CPU, d.MainCPU)
	}
	before = readOf(t, s)
	if before.Clients < 4 || before.Memory == 0 || before.At.IsZero() {
		t.Errorf("reading = %+v", before)
	}
	stranger := redis.NewClient(&redis.Options{Addr: plain})
	defer stranger.Close()
	for range 100 {
		must(t, stranger.Echo(ctx, "something from somebody else").Err())
	}
	if d := readOf(t, s).Since(before, 0); *d.OtherTraffic < 50 {
		t.Errorf("other clients' traffic is %.1f %%, most of it was", *d.OtherTraffic)
	}
	times, err := s.RoundTrips(ctx, clientsName)
	must(t, err)
	for what, of := range map[string][2]*int64{
		"PING": {times.PingP50, times.PingP99}, "a script": {times.ScriptP50, times.ScriptP99},
	} {
		if of[0] == nil || of[1] == nil || *of[0] <= 0 || *of[1] < *of[0] {
			t.Errorf("%s takes %v, %v", what, of[0], of[1])
		}
	}
}

// certificate creates a self-signed certificate for 127.0.0.1.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	write := func(name, kind string, contents []byte) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: contents}), 0o600))
		return file
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", private)
}
