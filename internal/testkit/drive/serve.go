package drive

import (
	"net"
	"sync"
	"testing"
)

// Serve returns the address of a server that lets answer handle each connection, and then closes it. It ends with the
// test.
func Serve(t testing.TB, answer func(net.Conn)) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { // nobody waits until another has been answered
				answer(conn)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return listener.Addr().String()
}
