package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
)

// TLS on one side alone is named as what it is, and quickly, whatever the two sides made
// of each other's bytes.
func TestTLSOnOneSide(t *testing.T) {
	cert, key := certificate(t)
	port, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p := process(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	for address, want := range map[string]error{
		"rediss://" + p.Addr():                    errNoTLS,
		fmt.Sprintf("redis://127.0.0.1:%d", port): errOnlyTLS,
	} {
		_, err := Open(t.Context(), Options{Address: address, RunID: "test"})
		if !errors.Is(err, ErrConfig) || !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", address, err, want)
			continue
		}
		if next := NextStep(err.Error()); !strings.Contains(next, "give the address with redis") {
			t.Errorf("%s: next step %q", address, next)
		}
	}
	_, err = Open(t.Context(), Options{Address: fmt.Sprintf("rediss://127.0.0.1:%d", port), RunID: "test"})
	if err == nil || !strings.Contains(NextStep(err.Error()), "--ca-file") {
		t.Errorf("a certificate of nobody known: %v", err)
	}
}

// saying is a server that says the same to everything.
func saying(t *testing.T, reply string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// A registry out of reach is no Redis out of reach.
func TestNoNextStepWithoutAnImage(t *testing.T) {
	err := fmt.Errorf("%w: lookup registry: no such host", launch.ErrNoImage)
	if next := NextStep(err.Error()); next != "" {
		t.Errorf("%v: next step %q", err, next)
	}
}

// What servers say in trouble leads to what to do.
func TestNextSteps(t *testing.T) {
	for _, test := range []struct {
		reply, next string
		kind        error
	}{
		{"-LOADING Redis is loading the dataset in memory", "reads its data", ErrUnreachable},
		{"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", "lost its primary", ErrConfig},
		{"-NOAUTH Authentication required.", "asks for a password", ErrConfig},
		{"-WRONGPASS invalid username-password pair or user is disabled.", "user or password is wrong", ErrConfig},
		{"-DENIED Redis is running in protected mode because protected mode is enabled", "no strangers", ErrConfig},
		{"-ERR max number of clients reached", "no more connections", ErrUnreachable},
		{"-MOVED 3999 127.0.0.1:6381", "a node of a cluster", ErrConfig},
	} {
		s, err := Open(context.WithoutCancel(t.Context()), Options{Address: saying(t, test.reply), RunID: "test"})
		if err == nil {
			t.Errorf("%s: it opened", test.reply)
			_ = s.Close(t.Context())
			continue
		}
		if !errors.Is(err, test.kind) || !strings.Contains(NextStep(err.Error()), test.next) {
			t.Errorf("%s: %v, next %q", test.reply, err, NextStep(err.Error()))
		}
	}
	if next := NextStep("it is Tuesday"); next != "" {
		t.Errorf("a next step for nothing: %s", next)
	}
}
