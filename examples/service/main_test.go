package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
)

// Two handlers, which stand for two processes of the service, sell seats of the same flight at the same time. Each seat
// must be sold exactly once.
func TestEachSeatIsSoldOnce(t *testing.T) {
	server := redistest.Start(t)
	var processes []http.Handler
	for range 2 {
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		locks, err := handoff.New(client)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = locks.Close(), client.Close() })
		processes = append(processes, handler(locks, store{client}))
	}
	ask := func(process int, method, path string) int {
		w := httptest.NewRecorder()
		processes[process].ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("")))
		return w.Code
	}
	for _, seats := range []string{"many", "-1", "2147483648"} {
		if code := ask(0, "PUT", "/flights/LX14?seats="+seats); code != http.StatusBadRequest {
			t.Errorf("%s seats: %d", seats, code)
		}
	}
	if code := ask(0, "PUT", "/flights/LX14?seats=10"); code != http.StatusOK {
		t.Fatalf("put up ten seats: %d", code)
	}
	codes := make([]int, 40)
	var buyers sync.WaitGroup
	for i := range codes {
		buyers.Go(func() { codes[i] = ask(i%2, "POST", "/flights/LX14/seats") })
	}
	buyers.Wait()
	count := map[int]int{}
	for _, code := range codes {
		count[code]++
	}
	if count[http.StatusOK] != 10 || count[http.StatusGone] != 30 {
		t.Errorf("ten seats, forty buyers: %v", count)
	}
}

// A holder whose lease has expired tries to write after the next holder has read but before it has written. The store
// must reject the write.
func TestStoreRefusesLateHolder(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	seats := store{client}
	const late, next = 1_790_000_000_000_001_024, 1_790_000_000_000_001_025 // the same number to Lua
	if err := seats.write(t.Context(), "LX14", late, 10); err != nil {
		t.Fatal(err)
	}
	if left, err := seats.read(t.Context(), "LX14", next); left != 10 || err != nil {
		t.Fatalf("read %d, %v", left, err)
	}
	if err := seats.write(t.Context(), "LX14", late, 9); !errors.Is(err, errStale) {
		t.Errorf("the late holder's write: %v", err)
	}
	if left, err := seats.read(t.Context(), "LX14", next); left != 10 || err != nil {
		t.Errorf("then there are %d, %v", left, err)
	}
}
