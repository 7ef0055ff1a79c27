package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// ends are the two of a connection through a wire.
func ends(t *testing.T, w *wire) (ours, theirs net.Conn) {
	t.Helper()
	ours, theirs = net.Pipe()
	conn, err := w.through(func(context.Context, string, string) (net.Conn, error) { return ours, nil })(t.Context(), "tcp", "redis")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(); _ = theirs.Close() })
	return conn, theirs
}

func TestAStoppedProcessNeitherSendsNorHears(t *testing.T) {
	w := newWire(nil)
	ours, theirs := ends(t, w)
	w.freeze()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := ours.Write([]byte("ping")); err != nil {
			t.Error(err)
		}
	}()
	if err := theirs.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 4)
	if _, err := theirs.Read(got); err == nil {
		t.Error("a stopped process has sent something")
	}
	_ = theirs.SetReadDeadline(time.Time{})
	w.thaw()
	if _, err := io.ReadFull(theirs, got); err != nil || string(got) != "ping" {
		t.Errorf("going on it sent %q, %v", got, err)
	}
	<-sent
}

func TestADeadProcessIsOnlyClosedSockets(t *testing.T) {
	w := newWire(nil)
	ours, theirs := ends(t, w)
	w.freeze() // also from there it can die
	failed := make(chan error)
	go func() {
		_, err := ours.Write([]byte("late"))
		failed <- err
	}()
	w.cut()
	if err := <-failed; !errors.Is(err, errDead) {
		t.Errorf("a write returned %v", err)
	}
	if n, err := theirs.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the other side got %d bytes, %v", n, err)
	}
	dial := w.through(func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("dialed") })
	if _, err := dial(t.Context(), "tcp", "redis"); !errors.Is(err, errDead) {
		t.Errorf("a dial returned %v", err)
	}
}

func TestAFuseLetsSoManyDifferentCommandsThrough(t *testing.T) {
	w := newWire(func(written []byte) []string { return strings.Fields(string(written)) })
	ours, theirs := ends(t, w)
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with the wire
	blown := 0
	w.arm(2, func() { blown++ })
	for i, test := range []struct {
		sent string
		dies bool
	}{
		{"SETNX", false},
		{"SETNX", false}, // again
		{"EVALSHA-aa SETNX", false},
		{"EVALSHA-bb", true},
		{"PING", true},
	} {
		if _, err := ours.Write([]byte(test.sent)); (err != nil) != test.dies {
			t.Errorf("write %d: %v", i+1, err)
		}
	}
	if blown != 1 {
		t.Errorf("it blew %d times", blown)
	}
}
