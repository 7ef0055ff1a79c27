package internal_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/lockbench/lockbench/internal/netfault"
)

func TestHooksWrapMethods(t *testing.T) {
	ours, theirs := net.Pipe()
	var written, read, closed int
	c := netfault.Conn(ours, netfault.Hooks{
		Write: func(b []byte, write func([]byte) (int, error)) (int, error) {
			written += len(b)
			if string(b) == "lost" {
				return len(b), nil
			}
			return write(b)
		},
		Read: func(b []byte, next func([]byte) (int, error)) (int, error) {
			n, err := next(b)
			read += n
			return n, err
		},
		Close: func(hangUp func() error) error { closed++; return hangUp() },
	})
	go func() {
		_, _ = c.Write([]byte("lost"))
		_, _ = c.Write([]byte("kept"))
		_, _ = io.ReadFull(c, make([]byte, 3))
		_ = c.Close()
	}()
	got := make([]byte, 4)
	if _, err := io.ReadFull(theirs, got); err != nil || string(got) != "kept" {
		t.Errorf("the other side got %q, %v", got, err)
	}
	if _, err := theirs.Write([]byte("yes")); err != nil {
		t.Error(err)
	}
	if _, err := theirs.Read(got); err != io.EOF {
		t.Errorf("it was not closed: %v", err)
	}
	if written != 8 || read != 3 || closed != 1 {
		t.Errorf("%d bytes written, %d read, closed %d times", written, read, closed)
	}
}

func TestUnderlyingSocketIsAccessible(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	hooked := netfault.Conn(socket, netfault.Hooks{})
	if _, ok := hooked.(syscall.Conn); !ok {
		t.Error("the socket is hidden")
	}
	if others := map[net.Conn]bool{hooked: true}; !others[hooked] {
		t.Error("it is not the same as itself")
	}
	//nolint:gosec // nothing is sent
	encrypted, ok := netfault.Conn(tls.Client(socket, &tls.Config{}),
		netfault.Hooks{}).(interface{ NetConn() net.Conn })
	if !ok || encrypted.NetConn() != socket {
		t.Error("what is below the encryption is hidden")
	}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	if _, ok := netfault.Conn(ours, netfault.Hooks{}).(syscall.Conn); ok {
		t.Error("a pipe is no socket")
	}
}

// full is a listener whose first Accepts fail with EMFILE, as if the process had run out of file descriptors.
type full struct {
	net.Listener
	times int
}

func (l *full) Accept() (net.Conn, error) {
	if l.times--; l.times >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// TestProxySurvivesLackOfDescriptors lets the first three Accepts fail for lack of file descriptors. The proxy must
// serve the next connection. If its accept loop ended instead, clients would connect and wait for ever, because the
// kernel still accepts connections for the listener.
func TestProxySurvivesLackOfDescriptors(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var proxies netfault.Proxies
	defer proxies.Close()
	proxy, err := proxies.Serve(&full{listener, 3}, func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = io.WriteString(theirs, "hello")
			_ = theirs.Close()
		}()
		return ours, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if said, err := io.ReadAll(conn); err != nil || string(said) != "hello" {
		t.Errorf("%q, %v", said, err)
	}
}
