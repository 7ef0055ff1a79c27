package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
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
	w := newWire()
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
	w := newWire()
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
	w := newWire()
	ours, theirs := ends(t, w)
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // ends with the wire
	blown := 0
	w.arm(2, func() { blown++ })
	for i, test := range []struct {
		sent string
		dies bool
	}{
		{"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n", false}, // no part of it
		{"*3\r\n$5\r\nsetnx\r\n$1\r\nk\r\n$1\r\nv\r\n", false},
		{"*3\r\n$5\r\nSETNX\r\n$1\r\nk\r\n$1\r\nv\r\n", false}, // again
		{"*2\r\n$7\r\nEVALSHA\r\n$2\r\naa\r\n", false},
		{"*2\r\n$7\r\nEVALSHA\r\n$2\r\nbb\r\n", true},
		{"*1\r\n$4\r\nPING\r\n", true},
	} {
		if _, err := ours.Write([]byte(test.sent)); (err != nil) != test.dies {
			t.Errorf("write %d: %v", i+1, err)
		}
	}
	if blown != 1 {
		t.Errorf("it blew %d times", blown)
	}
}

func TestCommandsInTheProtocol(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"*1\r\n$4\r\nping\r\n":          {"PING"},
		"*2\r\n$4\r\nECHO\r\n$3\r\na":   {"ECHO"},
		"*2\r\n$4\r\nECHO\r\n$99\r\n\r": {"ECHO"},
		"*1\r\n$4\r\nMULT\r\n*1\r\n$4\r\nEXEC\r\n": {"MULT", "EXEC"},
		"rest of a value\r\n*1\r\n$4\r\nPING\r\n":  nil,
		"*x\r\n": nil, "*": nil, "*99999999999999\r\n": nil,
	} {
		if got := commandsIn([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q has %v, want %v", text, got, want)
		}
	}
}
