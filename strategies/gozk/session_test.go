package gozk

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/drive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server that calls answer for each connection, and returns the Node with its address.
func serve(t *testing.T, answer func(net.Conn)) Node {
	t.Helper()
	return Node{Servers: []string{drive.Serve(t, answer)}}
}

// frame returns a message of ZooKeeper's protocol: its length in bytes, followed by the parts in big-endian order.
func frame(parts ...any) []byte {
	var body bytes.Buffer
	for _, part := range parts {
		_ = binary.Write(&body, binary.BigEndian, part)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(body.Len())), body.Bytes()...)
}

// request reads one request of the client and discards it.
func request(conn net.Conn) error {
	var length [4]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(length[:])))
	return err
}

// greets grants the session that a client requests on conn. timeout is in milliseconds; 0 means that the session has
// expired.
func greets(conn net.Conn, timeout int32) {
	_ = request(conn)
	_, _ = conn.Write(frame(int32(0), timeout, int64(77*min(timeout, 1)), int32(16), make([]byte, 16)))
}

// If no session can be opened, Connect must return when its context ends, and its error must contain the reason. It
// must leave no goroutine behind.
func TestNoSession(t *testing.T) {
	nothing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := nothing.Addr().String()
	_ = nothing.Close()
	hangsUp := serve(t, func(net.Conn) {})
	for name, c := range map[string]struct {
		node Node
		said string
	}{
		"nothing there": {Node{Servers: []string{addr}}, "connection refused"},
		"it hangs up":   {hangsUp, hangsUp.Servers[0]},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			dials := 0
			c.node.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				if dials++; dials == 2 { // what came of the first is known
					cancel()
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			s, err := c.node.Connect(ctx, 10*time.Second)
			if s != nil || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), c.said) {
				t.Errorf("error %v, want %q", err, c.said)
			}
		})
	}
	if _, err := (Node{}).Connect(t.Context(), time.Second); err == nil {
		t.Error("it connected to no server")
	}
}

// A server grants a session and then never replies. A call with a deadline must end at the deadline, and a write must
// return ErrIndeterminate. After the session's timeout, the session must be lost.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second // more than a stall of the machine takes before the first question
	var connections atomic.Int64
	node := serve(t, func(conn net.Conn) {
		if connections.Add(1) == 1 {
			greets(conn, int32(timeout.Milliseconds()))
		}
		_, _ = io.Copy(io.Discard, conn)
	})
	began := time.Now()
	s, err := node.Connect(t.Context(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Children(short, "/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a question with a deadline: %v", err)
	}
	if err := s.Set(t.Context(), "/", nil, -1); !errors.Is(err, ErrIndeterminate) {
		t.Errorf("a write: %v", err)
	}
	if _, err := s.Children(t.Context(), "/"); !errors.Is(err, ErrOver) {
		t.Errorf("a question that is never answered: %v", err)
	}
	if took := time.Since(began); took < timeout {
		t.Errorf("it was given up after %v", took)
	}
	for name, ended := range map[string]<-chan struct{}{"lost": s.Lost(), "over": s.Over()} {
		select {
		case <-ended:
		default:
			t.Errorf("it is not %s", name)
		}
	}
	if s.Go(func(context.Context) { t.Error("it goes on") }) {
		t.Error("a session that is over does more")
	}
}

// The session must use the timeout that the server grants, not the timeout that Connect requested. If the granted
// timeout is longer, the session must live at least until its first heartbeat. If it is shorter and the server is
// silent, the session must be lost.
func TestServerChangesSessionTimeout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked, granted time.Duration
		lives          bool
	}{
		"more": {20 * time.Millisecond, 6 * time.Second, true},
		"less": {time.Hour, 300 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			heartbeat := make(chan struct{}, 1)
			var connections atomic.Int64
			node := serve(t, func(conn net.Conn) {
				if connections.Add(1) == 1 {
					greets(conn, int32(c.granted.Milliseconds()))
					if request(conn) == nil {
						heartbeat <- struct{}{}
					}
				}
				_, _ = io.Copy(io.Discard, conn)
			})
			s, err := node.Connect(t.Context(), c.asked)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Abandon()
			var first <-chan struct{}
			if c.lives {
				first = heartbeat
			}
			select {
			case <-first:
			case <-s.Lost():
				if c.lives {
					t.Error("it was given up before its first heartbeat")
				}
			case <-time.After(time.Minute):
				t.Error("a silent server costs no session")
			}
		})
	}
}

// The server grants a session with a timeout of one minute, hangs up, and then reports the session as expired. The
// session must be over at once.
func TestExpired(t *testing.T) {
	var connections atomic.Int64
	node := serve(t, func(conn net.Conn) {
		if connections.Add(1) == 1 {
			greets(conn, 60000)
			return
		}
		greets(conn, 0)
	})
	s, err := node.Connect(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Abandon()
	select {
	case <-s.Over():
	case <-time.After(20 * time.Second):
		t.Fatal("it is not over")
	}
	<-s.Lost()
}
