package network_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/internal/testkit/drive"
)

func echo(conn net.Conn) { _, _ = io.Copy(conn, conn) }

// TestNothingIsLostOrReordered sends data through each kind of delay. The bytes must arrive exactly once and in order.
func TestNothingIsLostOrReordered(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	dial, hit, end := detour(t, "latency:delay=2ms,jitter=2ms", "bandwidth:rate=20000", "partition")
	conn, err := dial(t.Context(), "tcp", drive.Serve(t, echo))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sent, got := make([]byte, size), make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(sent)
	go func() {
		for rest := sent; len(rest) > 0; {
			piece := rest[:min(len(rest), 1+rand.IntN(8<<10))]
			if _, err := conn.Write(piece); err != nil {
				return // the failure shows in the reader
			}
			rest = rest[len(piece):]
		}
	}()
	done := make(chan error)
	go func() {
		_, err := io.ReadFull(conn, got)
		done <- err
	}()
	for over := false; !over; {
		hit(t)
		time.Sleep(rand.N(10 * time.Millisecond))
		end(t)
		select {
		case err = <-done:
			over = true
		case <-time.After(rand.N(2 * time.Millisecond)):
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("what came back is not what was sent")
	}
}

// A client sends data during a partition and closes the connection. The server must get the data after the partition.
// This is how a server can grant a lock to a client that has given up.
func TestPartitionDelaysDataOfClosedSenders(t *testing.T) {
	t.Parallel()
	heard := make(chan string, 1)
	dial, hit, end := detour(t, "partition")
	conn, err := dial(t.Context(), "tcp", drive.Serve(t, func(conn net.Conn) {
		all, _ := io.ReadAll(conn)
		heard <- string(all)
	}))
	if err != nil {
		t.Fatal(err)
	}
	hit(t)
	_, wrong := conn.Write([]byte("SET lock"))
	if err := errors.Join(wrong, conn.Close()); err != nil {
		t.Fatal(err)
	}
	select {
	case said := <-heard:
		t.Fatalf("%q came through the partition", said)
	case <-time.After(20 * time.Millisecond):
	}
	end(t)
	if said := <-heard; said != "SET lock" {
		t.Errorf("%q came after the partition", said)
	}
}

// A reset breaks the existing connections immediately, including idle ones. Until the fault ends, it also breaks each
// new connection.
func TestReset(t *testing.T) {
	t.Parallel()
	dial, hit, end := detour(t, "reset")
	addr := drive.Serve(t, echo)
	open := func() net.Conn {
		t.Helper()
		conn, err := dial(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	idle := open()
	_, _ = idle.Write([]byte("x"))
	if _, err := io.ReadFull(idle, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	hit(t)
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("an idle connection: %v", err)
	}
	fresh, err := dial(t.Context(), "tcp", addr)
	if err == nil { // otherwise the reset came before the dialler saw the connection
		defer fresh.Close()
		_, err = fresh.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a new connection: %v", err)
	}
	end(t)
	after := open()
	_, _ = after.Write([]byte("x"))
	if _, err := io.ReadFull(after, make([]byte, 1)); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}

// TestBandwidth sends 20 KB to a server and back. At 100 KB/s this must take at least 200 ms. A rate whose number of
// bytes overflows must not delay the data.
func TestBandwidth(t *testing.T) {
	t.Parallel()
	const size = 20_000
	for rate, least := range map[string]time.Duration{
		"100": 200 * time.Millisecond, "2305843009213693952": 0, // in bytes it is a multiple of 2⁶⁴
	} {
		dial, hit, _ := detour(t, "bandwidth:rate="+rate)
		hit(t)
		conn, err := dial(t.Context(), "tcp", drive.Serve(t, echo))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		if _, err := conn.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < least {
			t.Errorf("%d bytes took %v with %s KB/s", size, took, rate)
		}
	}
}

// TestCloseEndsBlockedConnections closes the proxies while a fault or a peer blocks connections. The client and the
// server must then both see the end of the connection.
func TestCloseEndsBlockedConnections(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"half-open", "partition", "latency:delay=1h", "bandwidth:rate=1", "reset"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{}, 1)
			addr := drive.Serve(t, func(conn net.Conn) {
				_, _ = io.Copy(io.Discard, conn)
				ended <- struct{}{}
			})
			faults := drive.Faults(t, text)
			injector := network.New(faults)
			defer injector.Close()
			conn, err := injector.Detour(0)(new(net.Dialer).DialContext)(t.Context(), "tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			action, err := injector.Prepare(faults[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := action.Hit(t.Context()); err != nil {
				t.Fatal(err)
			}
			full := make(chan struct{}) // writes until all buffers are full
			go func() {
				defer close(full)
				for {
					if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
						return
					}
				}
			}()
			time.Sleep(20 * time.Millisecond)
			injector.Close()
			<-full
			<-ended
			if err := action.End(t.Context()); err != nil {
				t.Error(err)
			}
			if conn, err := injector.Detour(0)(new(net.Dialer).DialContext)(t.Context(), "tcp", addr); err == nil {
				_ = conn.Close()
				t.Error("it could be dialled after Close")
			}
		})
	}
}
