package locktest

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
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
			during[command] = n
		}
	}
	return during
}

// calls reads lines such as "cmdstat_set:calls=21,usec=175,…".
func calls(t TB, server redis.UniversalClient) map[string]int {
	t.Helper()
	stats, err := server.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatalf("read commandstats: %v", err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(stats) {
		command, figures, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		figure, _, _ := strings.Cut(figures, ",")
		if counts[command], err = strconv.Atoi(figure); err != nil {
			t.Fatalf("read commandstats: %q", line)
		}
	}
	return counts
}
