package pipeline

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// A long reply comes whole, and leaves no long buffer behind.
func TestLongReply(t *testing.T) {
	t.Parallel()
	conn, err := Dial(redistest.Start(t).Node(t), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	const script = `local all = {} for i = 1, 20000 do all[i] = string.rep('x', 50) end return all`
	for _, source := range []string{script, "return string.rep('x', 8000000)", "return 1"} {
		command := redis.NewCmd(t.Context(), "eval", source, 0)
		if err := conn.Send(t.Context(), command); err != nil {
			t.Fatal(err)
		}
		all, array := command.Val().([]any)
		text, _ := command.Val().(string)
		if array && len(all) != 20000 || text != "" && len(text) != 8000000 || command.Err() != nil {
			t.Errorf("%d, %d, %v", len(all), len(text), command.Err())
		}
	}
	l, err := conn.line(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := l.wire.Load()
	w.mu.Lock()
	defer w.mu.Unlock()
	if cap(w.in) > 4*owedMost || len(w.waiting) > 0 {
		t.Errorf("%d bytes are kept, and %d calls", cap(w.in), len(w.waiting))
	}
}

// Who sees no connection, and comes to dial one after another caller has, takes that.
func TestOneConnectionForThoseWhoDialAfterOneAnother(t *testing.T) {
	t.Parallel()
	conn, err := Dial(redistest.Start(t).Node(t), time.Minute)
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
