package cohort_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/cohort"
)

func BenchmarkZZ(b *testing.B) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:7777"})
	defer c.Close()
	l, err := cohort.New(strategies.Config{Nodes: []strategies.Node{{Client: c}}, TTL: 30 * time.Second, Prefix: "zz"}, cohort.Defaults())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if err := l.Prepare(context.Background(), []string{"k"}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var all sync.WaitGroup
	for range 500 {
		all.Go(func() {
			for range b.N / 500 {
				h, err := l.Acquire(context.Background(), "k")
				if err != nil {
					b.Error(err)
					return
				}
				_ = h.(strategies.Timed).ValidUntil()
				if err := h.Release(context.Background()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
