// Command service is an HTTP service that sells each seat once, even if many processes of it run:
//
//	go run ./examples/service -redis 127.0.0.1:6379
//	curl -X PUT '127.0.0.1:8080/flights/LX14?seats=2'
//	curl -X POST 127.0.0.1:8080/flights/LX14/seats
//
// A lock alone is not enough: a process that is paused while it holds the lock continues its work after its lease has
// expired. Therefore each read and write carries the lease's fencing token, and the store rejects an older token.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/lock"
)

func main() {
	server := flag.String("redis", "127.0.0.1:6379", "address of the Redis")
	listen := flag.String("listen", "127.0.0.1:8080", "address of the service")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, *server, *listen)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run serves requests until ctx ends, and then finishes those in progress.
func run(ctx context.Context, server, listen string) error {
	client := redis.NewClient(&redis.Options{Addr: server})
	defer func() { _ = client.Close() }()
	locks, err := handoff.New(client, lock.Prefix("seats:"), lock.TTL(10*time.Second), lock.Wait(2*time.Second))
	if err != nil {
		return fmt.Errorf("open the lock: %w", err)
	}
	defer func() { _ = locks.Close() }()
	web := &http.Server{Addr: listen, Handler: handler(locks, store{client}), ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.ListenAndServe() }()
	select {
	case err := <-served:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	return errors.Join(web.Shutdown(last), ignore(<-served, http.ErrServerClosed))
}

func ignore(err, usual error) error {
	if errors.Is(err, usual) {
		return nil
	}
	return err
}

var errSoldOut = errors.New("sold out")

func handler(locks *lock.FencedLocker, seats store) http.Handler {
	mux := http.NewServeMux()
	locked := func(work func(r *http.Request, flight string, token int64) (left int, err error)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			flight := r.PathValue("flight")
			lease, err := locks.Acquire(r.Context(), flight)
			if err != nil {
				answer(w, 0, err)
				return
			}
			left, err := work(r, flight, lease.FencingToken())
			if lost := lease.Release(context.WithoutCancel(r.Context())); lost != nil {
				log.Print(lost) // no update is lost, because the store checks the fencing token
			}
			answer(w, left, err)
		}
	}
	mux.Handle("PUT /flights/{flight}", locked(func(r *http.Request, flight string, token int64) (int, error) {
		given, err := strconv.ParseUint(r.FormValue("seats"), 10, 31)
		n := int(given)
		if err != nil {
			return 0, fmt.Errorf("seats: %w", err)
		}
		return n, seats.write(r.Context(), flight, token, n)
	}))
	mux.Handle("POST /flights/{flight}/seats", locked(func(r *http.Request, flight string, token int64) (int, error) {
		left, err := seats.read(r.Context(), flight, token)
		if err != nil {
			return 0, err
		}
		if left == 0 {
			return 0, errSoldOut
		}
		return left - 1, seats.write(r.Context(), flight, token, left-1)
	}))
	return mux
}

// answer writes the response to a request. A client may repeat a request that failed with 409 or 503.
func answer(w http.ResponseWriter, left int, err error) {
	var number *strconv.NumError
	switch {
	case err == nil:
		fmt.Fprintf(w, "%d seats left\n", left)
	case errors.Is(err, errSoldOut):
		http.Error(w, err.Error(), http.StatusGone)
	case errors.Is(err, lock.ErrHeld), errors.Is(err, errStale):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.As(err, &number):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}
