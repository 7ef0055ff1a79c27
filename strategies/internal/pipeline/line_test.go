package pipeline

import (
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// Who sees no connection, and comes to dial one after another caller has, takes that.
func TestOneConnectionForThoseWhoDialAfterOneAnother(t *testing.T) {
	t.Parallel()
	conn, err := Dial(redistest.Start(t).Node(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	l, err := conn.line(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var wires [2]*wire
	for i := range wires {
		if err := conn.connect(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		wires[i] = l.wire.Load()
	}
	if wires[0] != wires[1] {
		t.Error("a second connection has taken the place of the first, which nobody ends")
	}
}
