package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// A long reply comes whole, and leaves no long buffer behind.
func TestLongReply(t *testing.T) {
	t.Parallel()
	conn, err := Dial(redistest.Start(t).Node(t), time.Minute, "")
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
	conn, err := Dial(redistest.Start(t).Node(t), time.Minute, "")
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
		conn, err := Dial(goredis.Node{Client: client}, most, "")
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

// Callers whose requests are written together share runs of the script, in the place of the first, and one TIME behind
// all. Each has one result, however many replies come before the connection breaks.
func TestSharedCommands(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for replies := range 6 {
		ours, theirs := net.Pipe()
		w := wireOn(ours)
		var calls []*call
		queue := func(r request) {
			c := &call{request: r, left: 1, done: make(chan error, 1)}
			calls = append(calls, c)
			if err := w.queue(c); err != nil {
				t.Fatal(err)
			}
		}
		queue(request{command: redis.NewCmd(t.Context(), "get", "first"), timed: true})
		names := make([]string, mostRun+2)
		for i := range names {
			names[i] = fmt.Sprint("lock", i)
			queue(request{key: &names[i], arg: &names[i]})
		}
		queue(request{command: redis.NewCmd(t.Context(), "get", "last"), timed: true})
		go func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.writeOnce()
			_ = ours.Close()
		}()
		written, err := io.ReadAll(theirs)
		if err != nil {
			t.Fatal(err)
		}
		run := func(names []string) string {
			return strings.Join(slices.Concat([]string{"evalsha hash", fmt.Sprint(len(names))}, names, names), " ")
		}
		var got []string
		for len(written) > 0 {
			words, _, n, err := parse(written)
			if err != nil {
				t.Fatal(err)
			}
			got, written = append(got, strings.Trim(fmt.Sprint(words), "[]")), written[n:]
		}
		want := []string{"get first", run(names[:mostRun]), run(names[mostRun:]), "get last", "time"}
		if !slices.Equal(got, want) {
			t.Fatalf("it has written %q", got)
		}
		w.mu.Lock()
		in := []string{
			"$1\r\na\r\n", "*64" + strings.Repeat("\r\n:1", mostRun) + "\r\n", "*2\r\n:1\r\n:0\r\n", "-ERR b\r\n",
			"*2\r\n$2\r\n12\r\n$1\r\n7\r\n",
		}
		if _, err := w.deliver([]byte(strings.Join(in[:replies], ""))); err != nil {
			t.Fatal(err)
		}
		w.end(broken)
		if _, err := w.deliver([]byte(":1\r\n")); !errors.Is(err, errUnasked) {
			t.Errorf("a reply that comes after the end: %v", err)
		}
		w.mu.Unlock()
		for i, c := range calls {
			complete := replies == 5 // with TIME, for the first and the last
			if c.key != nil {
				complete = replies >= 2 && i <= mostRun || replies >= 3
			}
			if err := <-c.done; (err == nil) != complete || len(c.done) > 0 {
				t.Errorf("%d replies: call %d ended with %v", replies, i, err)
			}
		}
		first, second, last := calls[0], calls[mostRun+2], calls[len(calls)-1]
		if replies == 5 && (first.command.Val() != "a" || first.reply != int64(12e6+7) || last.command.Err() == nil ||
			second.reply != int64(0) || w.owed != 0) {
			t.Errorf("%v, %v, %v, %v, %d bytes owed", first.command, first.reply, last.command, second.reply, w.owed)
		}
	}
}

// A server that answers what it has not been sent yet leaves nobody waiting for ever, and gives nobody an answer.
func TestAnswerBeforeTheCommand(t *testing.T) {
	t.Parallel()
	key, arg := "lock", "id"
	for name, made := range map[string]func() request{
		"run":   func() request { return request{key: &key, arg: &arg} },
		"timed": func() request { return request{command: redis.NewCmd(t.Context(), "get", "b"), timed: true} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				w := wireOn(ours)
				var answered atomic.Int64
				send := func(r request) {
					go func() {
						if _, sent, err := w.send(context.Background(), r, time.Now()); sent && err == nil {
							answered.Add(1)
						}
					}()
					synctest.Wait()
				}
				send(request{command: redis.NewCmd(t.Context(), "get", "a")}) // stays in its write
				send(made())
				_, _ = theirs.Write([]byte("$1\r\na\r\n$1\r\nb\r\n")) // the second before it was asked for
				synctest.Wait()
				send(made())
				w.tasks.Close()
				if n := answered.Load(); n != 1 {
					t.Errorf("%d callers have an answer", n)
				}
			})
		})
	}
}

// wireOn is a wire that nobody has greeted.
func wireOn(conn net.Conn) *wire {
	return &wire{
		conn: conn, script: "hash", timeout: time.Second, tasks: new(background.Group),
		ended: make(chan struct{}), hangUp: func() { _ = conn.Close() }, last: time.Now(),
	}
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
