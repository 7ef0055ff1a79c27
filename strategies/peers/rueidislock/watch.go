package rueidislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// againAfter is how long a waiter can sleep at most on a lock that is free.
	againAfter = 2 * time.Second
	// pingEvery is how long a lost server can go unnoticed.
	pingEvery = time.Second
	// pingPatience is how long Redis may take to answer, as for our own clients.
	pingPatience = 10 * time.Second
)

var (
	// errAgain ends a wait that should be started over.
	errAgain = errors.New("wait again")
	// errLost ends the waits when Redis does not answer.
	errLost = errors.New("cannot reach Redis")
)

// watch looks whether Redis can be reached while somebody waits.
type watch struct {
	client  rueidis.Client
	waiting atomic.Int64
	server  atomic.Pointer[reachable]
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// reachable ends when Redis is lost; a new one then replaces it.
type reachable struct {
	context.Context
	lost context.CancelCauseFunc
}

func newReachable() *reachable {
	ctx, lost := context.WithCancelCause(context.Background())
	return &reachable{ctx, lost}
}

func newWatch(client rueidis.Client) *watch {
	w := &watch{client: client}
	w.server.Store(newReachable())
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.running.Go(func() { w.run(ctx) })
	return w
}

func (w *watch) stop() {
	w.cancel()
	w.running.Wait()
	w.server.Load().lost(nil)
}

// until calls end when ctx ends, when Redis is lost, or when it is time to wait again. The
// returned function stops that, and says whether it was in time.
func (w *watch) until(ctx context.Context, end context.CancelCauseFunc) func() bool {
	w.waiting.Add(1)
	server := w.server.Load()
	kept := context.AfterFunc(ctx, func() { end(ctx.Err()) })
	reached := context.AfterFunc(server, func() { end(context.Cause(server)) })
	again := time.AfterFunc(againAfter, func() { end(errAgain) })
	return func() bool {
		w.waiting.Add(-1)
		inTime := again.Stop()
		inTime = kept() && inTime
		return reached() && inTime
	}
}

func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if w.waiting.Load() == 0 {
			continue
		}
		if err := w.ping(ctx); err != nil {
			w.server.Swap(newReachable()).lost(fmt.Errorf("%w: %w", errLost, err))
		}
	}
}

// ping asks twice: the first PING may find a broken connection, and has the client dial
// again.
func (w *watch) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	err := w.client.Do(ctx, w.client.B().Ping().Build()).Error()
	if err != nil {
		err = w.client.Do(ctx, w.client.B().Ping().Build()).Error()
	}
	return err
}
