package locktest

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
)

// TB is what Calls needs of a testing.TB.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Calls counts how often a server ran each command while do ran, including commands inside
// scripts (INFO commandstats). Nobody else may use the server meanwhile.
func Calls(t TB, server redis.UniversalClient, do func()) map[string]int {
	t.Helper()
	before := calls(t, server)
	do()
	during := map[string]int{}
	for command, n := range calls(t, server) {
		if n -= before[command]; n > 0 && command != "info" {
			during[command] = int(n)
		}
	}
	return during
}

func calls(t TB, server redis.UniversalClient) map[string]int64 {
	t.Helper()
	stats, err := server.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatalf("read commandstats: %v", err)
	}
	return replies.ParseInfo(stats).Calls()
}
