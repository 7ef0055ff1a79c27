package pipeline

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
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

// Who had to wait for the connection has less time left than others on it: his ends for him alone, and in time.
func TestTimeOfACallerIsHisOwn(t *testing.T) {
	const most, dial, answer, after = 20 * time.Second, 18 * time.Second, 4 * time.Second, 17 * time.Second
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{
			Addr:        "127.0.0.1:1",
			ReadTimeout: most,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				time.Sleep(dial)
				ours, theirs := net.Pipe()
				go serve(theirs, answer)
				return ours, nil
			},
		})
		defer client.Close()
		conn, err := Dial(goredis.Node{Client: client}, most)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var all sync.WaitGroup
		ask := func(times int, want time.Duration, doubtful bool) {
			for range times { // whoever of them comes first to the connection
				all.Go(func() {
					since := time.Now()
					err := conn.Send(t.Context(), redis.NewCmd(t.Context(), "get", "key"))
					wrong := err != nil
					if doubtful {
						wrong = !indeterminate.MayHaveRun(err)
					}
					if took := time.Since(since); took > want || wrong {
						t.Errorf("after %v: %v", took, err)
					}
				})
			}
		}
		ask(5, most, true)
		time.Sleep(after)
		ask(5, dial+answer-after, false)
		all.Wait()
	})
}

// serve greets a client, and answers all else later.
func serve(conn net.Conn, later time.Duration) {
	in, buffer := []byte(nil), make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		in = append(in, buffer[:n]...)
		for {
			words, _, n, _ := parse(in)
			if n == 0 {
				break
			}
			in = in[n:]
			answer := "+PONG\r\n"
			switch words.([]any)[0] {
			case "hello":
				answer = "-ERR unknown command\r\n"
			case "get":
				time.AfterFunc(later, func() { _, _ = conn.Write([]byte("$-1\r\n")) })
				continue
			}
			_, _ = conn.Write([]byte(answer))
		}
	}
}
