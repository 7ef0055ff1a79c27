package network

import (
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/workloads"
)

// full is a listener of a process that has too many open files for a while.
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

// A proxy outlasts a lack of files. The kernel would go on accepting what nobody serves.
func TestProxiesOutlastALackOfFiles(t *testing.T) {
	t.Parallel()
	n := New([]workloads.Fault{{Name: workloads.Partition}})
	defer n.Close()
	r := route{0, drive.Serve(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "hello") })}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &full{listener, 3}
	n.proxies[r] = proxy
	n.going.Go(func() { n.serve(r, proxy) })
	conn, err := n.Detour(0)(new(net.Dialer).DialContext)(t.Context(), "tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if said, err := io.ReadAll(conn); err != nil || string(said) != "hello" {
		t.Errorf("%q, %v", said, err)
	}
}
