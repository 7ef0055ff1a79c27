package servers

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/results"
)

// What is counted at our sockets must be what Redis counts, with and without
// TLS, as long as nobody else is there.
func TestCountsAgree(t *testing.T) {
	plain := process(t)
	cert, key := certificate(t)
	encrypted, port := processWithTLS(t, cert, key)
	t.Run("plain", func(t *testing.T) {
		countsAgree(t, open(t, Options{Address: plain.Addr()}), plain)
	})
	t.Run("TLS", func(t *testing.T) {
		address := "rediss://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if _, err := Open(t.Context(), Options{Address: address, RunID: "test"}); !errors.Is(err, ErrUnreachable) {
			t.Errorf("a certificate of nobody known: %v, want ErrUnreachable", err)
		}
		s := open(t, Options{Address: address, CAFile: cert})
		if !s.Describe().TLS {
			t.Error("the description does not say TLS")
		}
		countsAgree(t, s, encrypted)
	})
}

// processWithTLS also listens at a port for TLS, another one if somebody takes it.
func processWithTLS(t *testing.T, cert, key string) (p *Process, port int) {
	t.Helper()
	err := launch.OnFreePort(launch.FreePort, portTaken, func(free int) (err error) {
		port = free
		p, err = Options{RunID: "test"}.startProcess(t.Context(), launch.FreePort, nil, "--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p, port
}

func countsAgree(t *testing.T, s *Server, p *Process) {
	t.Helper()
	ctx := t.Context()
	read := func() results.Reading {
		r, err := s.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	before := read()
	nodes, err := s.Clients(ctx, "lockbench:test:clients", 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := nodes[0].Client
	const loops = 100
	for range loops {
		if err := client.Set(ctx, "k", "value", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	_, err = client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for range loops {
			pipe.Get(ctx, "k")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d := read().Since(before, loops)
	if d.Commands["set"] != loops || d.Commands["get"] != loops || *d.Calls < 2*loops {
		t.Errorf("commands = %v", d.Commands)
	}
	// 100 SETs, one pipeline, one INFO, and for each of 3 connections HELLO, the
	// name and PING.
	if want := int64(loops + 1 + 1 + 3*3); *d.RoundTrips != want {
		t.Errorf("%d round trips, want %d", *d.RoundTrips, want)
	}
	if *d.BytesIn != *d.ClientBytesOut || *d.OtherTraffic != 0 {
		t.Errorf("Redis received %d bytes, we sent %d, foreign %v %%", *d.BytesIn, *d.ClientBytesOut, *d.OtherTraffic)
	}
	// The reply to the last reading is not in it, that to the first is.
	if diff := *d.ClientBytesIn - *d.BytesOut; diff < -4096 || diff > 4096 {
		t.Errorf("Redis sent %d bytes, we received %d", *d.BytesOut, *d.ClientBytesIn)
	}
	if d.CPU == nil || d.MainCPU == nil || *d.CPU < *d.MainCPU*0.5 {
		t.Errorf("CPU = %v, main thread %v", d.CPU, d.MainCPU)
	}
	if r := read(); r.Clients < 4 || r.Memory == 0 || r.At.IsZero() {
		t.Errorf("reading = %+v", r)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	foreign(t, s, p)
}

// foreign has a stranger talk to the server.
func foreign(t *testing.T, s *Server, p *Process) {
	t.Helper()
	before, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stranger := redis.NewClient(&redis.Options{Addr: p.Addr()})
	defer stranger.Close()
	for range 100 {
		if err := stranger.Echo(t.Context(), "something from somebody else").Err(); err != nil {
			t.Fatal(err)
		}
	}
	after, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := after.Since(before, 0); *d.OtherTraffic < 50 {
		t.Errorf("other clients' traffic is %.1f %%, most of it was", *d.OtherTraffic)
	}
}

// certificate makes a certificate for 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, contents []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: contents}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return write("cert.pem", "CERTIFICATE", cert), write("key.pem", "PRIVATE KEY", private)
}

func TestReadOfDeadServer(t *testing.T) {
	p := process(t)
	s := open(t, Options{Address: p.Addr()})
	if err := p.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("read: %v, want ErrUnreachable", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, ErrUnreachable) {
		t.Errorf("ping: %v, want ErrUnreachable", err)
	}
	if _, err := s.Clients(t.Context(), "lockbench:test:clients", 2, nil); !errors.Is(err, ErrUnreachable) {
		t.Errorf("connect: %v, want ErrUnreachable", err)
	}
}

// Several nodes' counters are summed; what one does not tell is not known.
func TestReadSumsNodes(t *testing.T) {
	one, two := process(t), process(t, "--user", "little", "on", "nopass", "~*", "&*", "+@all", "-info")
	s := open(t, Options{Address: one.Addr()})
	other := open(t, Options{Address: two.Addr()})
	s.nodes = append(s.nodes, other.nodes...)
	defer func() { s.nodes = s.nodes[:1] }()
	single, err := other.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if sum.Commands["info"] <= single.Commands["info"] || *sum.BytesIn <= *single.BytesIn {
		t.Errorf("the sum %+v is not more than one node's %+v", sum, single)
	}
	if err := one.Kill(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context()); err == nil {
		t.Error("a sum without one of the nodes")
	}
}
