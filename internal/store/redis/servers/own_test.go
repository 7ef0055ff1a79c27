package servers

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server that writes a snapshot of its own accord refuses to write another.
func TestSaveWaitsForASaveUnderWay(t *testing.T) {
	t.Parallel()
	p := process(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := control(p.Addr(), "", func(client *redis.Client) error {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "a", 1, 0)
			pipe.ConfigSet(ctx, "rdb-key-save-delay", "500000") // µs
			pipe.BgSave(ctx)
			pipe.ConfigSet(ctx, "rdb-key-save-delay", "0")
			return nil
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Save(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(p.Dir(), snapshot)); err != nil {
		t.Errorf("the snapshot: %v", err)
	}
}
