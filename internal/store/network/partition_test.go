package network_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/drive"
)

// A client closes its connection during a partition, with data on the way to it. The end of the partition must not wait
// until this data is read: the other client must get its own data.
func TestPartitionEndsDespiteClosedClient(t *testing.T) {
	t.Parallel()
	subscribed := make(chan net.Conn, 2)
	server := drive.Serve(t, func(conn net.Conn) {
		subscribed <- conn
		_, _ = io.Copy(io.Discard, conn) // until the client closes the connection
	})
	dial, hit, end := detour(t, "partition")
	subscribe := func() (conn, publisher net.Conn) {
		conn, err := dial(t.Context(), "tcp", server)
		if err != nil {
			t.Fatal(err)
		}
		return conn, <-subscribed
	}
	gone, first := subscribe()
	patient, second := subscribe()
	defer patient.Close()
	hit(t)
	for i := range 20 { // each in its own segment
		for _, publisher := range []net.Conn{first, second} {
			if _, err := fmt.Fprintf(publisher, "number %d\r\n", i); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := patient.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	news := bufio.NewReader(patient)
	if line, err := news.ReadString('\n'); err == nil {
		t.Fatalf("%q came through the partition", line)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	end(t)
	if took := time.Since(began); took > 4*time.Second { // the end does not wait for a reader
		t.Errorf("it took %v to end", took)
	}
	if err := patient.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for next := range 20 {
		if line, err := news.ReadString('\n'); err != nil || line != fmt.Sprintf("number %d\r\n", next) {
			t.Fatalf("after %d messages: %q, %v", next, line, err)
		}
	}
}
