package network_test

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// A client that times out in a partition closes its connection, and no longer reads what was sent to it. That must
// not prolong the partition for the other clients.
func TestAPartitionEndsAlthoughSomebodyHasHungUp(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	dial, hit, end := detour(t, "partition")
	subscribe := func() net.Conn {
		conn, err := dial(t.Context(), "tcp", server.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(conn, "SUBSCRIBE news\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "*3\r\n" {
			t.Fatalf("subscribe: %q, %v", line, err)
		}
		return conn
	}
	gone, patient := subscribe(), subscribe()
	defer patient.Close()
	hit(t)
	outside := server.Client(t)
	for i := range 20 { // each a piece of its own
		if n := outside.Publish(t.Context(), "news", fmt.Sprint("number ", i)).Val(); n != 2 {
			t.Fatalf("%d received it, not 2", n)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := patient.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	news := bufio.NewReader(patient)
	for { // the rest of the reply to SUBSCRIBE may still be there
		line, err := news.ReadString('\n')
		if err != nil {
			break
		}
		if line == "number 0\r\n" {
			t.Fatal("something came through the partition")
		}
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	end(t)
	if took := time.Since(began); took > 4*time.Second { // and not until somebody reads
		t.Errorf("it took %v to end", took)
	}
	if err := patient.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for next := 0; next < 20; {
		line, err := news.ReadString('\n')
		if err != nil {
			t.Fatalf("after %d messages: %v", next, err)
		}
		if line == fmt.Sprintf("number %d\r\n", next) {
			next++
		}
	}
}
