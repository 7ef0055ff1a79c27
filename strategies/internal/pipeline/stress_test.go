package pipeline_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/network"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Each caller gets the answers to his own commands, and each command is carried out once at most, and never where its
// error says that it was not sent, while callers give up, and the server and the network stop and break.
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
	client := open(t, node)
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
				word, big := fmt.Sprint(i, "-", n), make([]byte, rand.IntN(2000)*(n%2))
				count := redis.NewCmd(ctx, "incr", "count")
				const script = "return {ARGV[1], #ARGV[2], redis.call('incr', KEYS[1])}"
				echo := redis.NewCmd(ctx, "eval", script, 1, "count2", word, big)
				err := client.Send(ctx, count, echo)
				took := time.Since(since)
				cancel()
				for old := late.Load(); int64(took-limit) > old && !late.CompareAndSwap(old, int64(took-limit)); {
					old = late.Load()
				}
				if err == nil {
					err = count.Err()
				}
				switch {
				case err == nil:
					sure.Add(1)
					answer, err := echo.Slice()
					if err != nil || len(answer) != 3 || answer[0] != word || answer[1] != int64(len(big)) {
						t.Errorf("%s got %v, %v", word, answer, err)
						return
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
			client.Redial()
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
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"count", "count2"} {
		n, err := server.Client(t).Get(t.Context(), key).Int64()
		if err != nil || n < sure.Load() || n > sure.Load()+perhaps.Load() {
			t.Errorf("%s is %d, %v; %d were answered, and %d may have run", key, n, err, sure.Load(), perhaps.Load())
		}
	}
}
