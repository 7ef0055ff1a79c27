package network_test

import (
	"net"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/network"
)

// A client that sets its deadline anew just when the way breaks sees that at once, as of a
// connection that was reset.
func TestABrokenWayIsSeenAtOnce(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	p := new(network.Path)
	c, err := p.Dial(t.Context(), "tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	late := p.Snap()
	_ = c.SetReadDeadline(time.Now().Add(time.Hour))
	_ = c.SetDeadline(time.Now().Add(time.Hour))
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil {
			t.Error("it reads from a connection that has broken")
		}
	case <-time.After(time.Minute):
		t.Error("it waits for an answer on a connection that has broken")
	}
	if err := late.Deliver(); err != nil {
		t.Error(err)
	}
}
