package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/network"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
)

// echo returns a word for each key, which it counts, and Redis's time.
const echo = `local all, time = {}, redis.call('time')
for i, key in ipairs(KEYS) do all[i] = {ARGV[i], redis.call('incr', key), time[1] * 1000000 + time[2]} end
return all`

// Each caller gets the answer to his own command, or his part of one that is shared, and each command is carried out
// once at most, and never where its error says that it was not sent, while callers give up, and the server and the
// network stop and break. A time is from after the command.
func TestCallersBesideFaults(t *testing.T) {
	t.Parallel()
	for _, looks := range []bool{true, false} { // whether the end of an idle connection is seen at the socket
		t.Run(fmt.Sprint(looks), func(t *testing.T) { t.Parallel(); besideFaults(t, looks) })
	}
}

func besideFaults(t *testing.T, looks bool) {
	server, path := redistest.Start(t), new(network.Path)
	node := with(t, server.Node(t), func(o *redis.UniversalOptions) {
		o.ReadTimeout = 200 * time.Millisecond
		if !looks {
			o.Dialer = path.Dial
		}
	})
	hash := server.Client(t).ScriptLoad(t.Context(), echo).Val()
	conn, err := pipeline.Dial(node, time.Minute, hash)
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	var sure, perhaps, unsent, late atomic.Int64
	for i := range 50 {
		wg.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				limit := time.Duration(rand.Int64N(int64(20 * time.Millisecond)))
				if n%4 == 0 {
					limit = time.Minute
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				since := time.Now()
				key, word := "count", fmt.Sprint(i, "-", n, strings.Repeat("x", rand.IntN(2000)*(n%2)))
				command := redis.NewCmd(ctx, "evalsha", hash, 1, key, word)
				var reply any
				var now int64
				var err error
				if n%3 == 0 {
					reply, err = conn.Run(ctx, &key, &word)
				} else {
					if n%3 == 1 {
						now, err = conn.SendTimed(ctx, command)
					} else {
						err = conn.Send(ctx, command)
					}
					if err == nil {
						err = command.Err()
						all, _ := command.Val().([]any)
						reply = slices.Concat(all, []any{nil})[0]
					}
				}
				took := time.Since(since)
				cancel()
				for old := late.Load(); int64(took-limit) > old && !late.CompareAndSwap(old, int64(took-limit)); {
					old = late.Load()
				}
				switch {
				case err == nil:
					sure.Add(1)
					answer, _ := reply.([]any)
					if len(answer) != 3 || answer[0] != word {
						t.Errorf("%.20s got %.60v", word, reply)
						return
					}
					counted := answer[2].(int64)
					if late := time.Now().UnixMicro(); n%3 == 1 && (now < counted || now > late) {
						t.Errorf("the time is %d, of a command at %d with an answer at %d", now, counted, late)
					}
				case indeterminate.MayHaveRun(err):
					perhaps.Add(1)
				default:
					unsent.Add(1)
				}
			}
		})
	}
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rand.Int64N(int64(50 * time.Millisecond))))
		switch rand.IntN(5) {
		case 0:
			server.Pause()
			time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond))))
			server.Resume()
		case 1:
			conn.Redial()
		case 2:
			_ = server.Client(t).Do(t.Context(), "client", "kill", "type", "normal").Err()
		case 3:
			path.HangUp()
		case 4:
			path.Stall(true)
			time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond))))
			path.Stall(false)
		}
	}
	wg.Wait()
	t.Logf("answered %d, perhaps %d, not sent %d, at most %v too late", sure.Load(), perhaps.Load(), unsent.Load(),
		time.Duration(late.Load()))
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	n, err := server.Client(t).Get(t.Context(), "count").Int64()
	if err != nil || n < sure.Load() || n > sure.Load()+perhaps.Load() {
		t.Errorf("%d were counted, %v; %d were answered, and %d may have run", n, err, sure.Load(), perhaps.Load())
	}
}
