package internal_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
)

// dialled returns a new path, a connection on this path, and the listener to which the connection was dialled.
func dialled(t *testing.T) (*netfault.Path, net.Conn, net.Listener) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	p := new(netfault.Path)
	c, err := p.Dial(t.Context(), "tcp", server.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p, c, server
}

// TestBrokenConnectionIsSeenAtOnce sets a new deadline on a connection that Snap has just broken. A read must fail
// immediately, as on a connection that was reset, and not only at the deadline.
func TestBrokenConnectionIsSeenAtOnce(t *testing.T) {
	p, c, _ := dialled(t)
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

// TestDeadlinesEndAStall holds back the data of a connection. Reads and writes must fail at their deadlines, as on a
// socket. After the stall, a read must return the data.
func TestDeadlinesEndAStall(t *testing.T) {
	p, c, server := dialled(t)
	t.Cleanup(func() { _ = c.Close() })
	other, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	b := make([]byte, 8)

	answers := p.Hold(netfault.Answers, 0)
	if _, err := other.Write([]byte("said")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		if n, err := c.Read(b); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a read at a blockade returned %d, %v", n, err)
		}
	}
	answers.Open()
	_ = c.SetReadDeadline(time.Time{})
	if n, err := c.Read(b); string(b[:n]) != "said" || err != nil {
		t.Errorf("after it a read returned %q, %v", b[:n], err)
	}

	p.Hold(netfault.Write, 0)
	_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := c.Write([]byte("lost")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a write at a blockade returned %d, %v", n, err)
	}

	p.Hold(netfault.Answers, 0)
	if _, err := other.Write([]byte("unheard")); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { _ = c.Close() })
	if _, err := c.Read(b); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read at a blockade of a closed connection returned %v", err)
	}
}

// TestConnectionBreaksAtSelectedWrite selects one write with BreakAt. The connection must break only there: before the
// server gets the write, or before the client gets the reply.
func TestConnectionBreaksAtSelectedWrite(t *testing.T) {
	for _, test := range []struct {
		kind netfault.Blocked
		want string // what the server gets
	}{{netfault.LostWrite, "one "}, {netfault.LostAnswer, "one two "}} {
		p, c, server := dialled(t)
		got := make(chan string, 1)
		go func() {
			other, err := server.Accept()
			if err != nil {
				got <- err.Error()
				return
			}
			var all bytes.Buffer
			_, _ = io.Copy(other, io.TeeReader(other, &all))
			_ = other.Close()
			got <- all.String()
		}()
		broke := p.BreakAt(test.kind, func(written []byte) bool { return bytes.Contains(written, []byte("two")) })
		say := func(words string) error {
			_, err := io.WriteString(c, words)
			if err == nil {
				_, err = io.ReadFull(c, make([]byte, len(words)))
			}
			return err
		}
		if err := say("one "); err != nil {
			t.Fatal(err)
		}
		select {
		case <-broke:
			t.Error("it broke too early")
		default:
		}
		if err := say("two "); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the write at which it breaks returned %v", err)
		}
		<-broke
		if said := <-got; said != test.want {
			t.Errorf("the server got %q, want %q", said, test.want)
		}
	}
}
