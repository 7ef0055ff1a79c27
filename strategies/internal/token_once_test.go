package internal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// Redis does not reply to an extension, and the client would retry. The extension must be sent only once: the reply to
// a second try would hide that the first may still reach Redis. In one case the client's time limit ends the call, in
// the other its context.
func TestExtensionIsSentOnce(t *testing.T) {
	t.Parallel()
	for what, limit := range map[string]time.Duration{
		"the client's time limit": time.Minute,
		"the context":             150 * time.Millisecond,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			client := redistest.Dial(t, server.URL()+
				"?read_timeout=100ms&max_retries=3&min_retry_backoff=100ms&max_retry_backoff=100ms")
			held := take(t, client, "mine", time.Minute)
			if err := held.Extend(t.Context(), time.Minute); err != nil { // the script is loaded
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			server.Pause()
			if err := held.Extend(ctx, 10*time.Second); err == nil {
				t.Error("extended on a server that is stopped")
			}
			server.Resume()
			outside := server.Client(t)
			poll.Until(t, "the server has heard of it",
				func() bool { return outside.PTTL(t.Context(), "key").Val() <= 10*time.Second })
			if err := held.Extend(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			if left := time.Until(held.ValidUntil()); left > 10*time.Second {
				t.Errorf("it is said to be valid for %v, although a copy of the extension by 10s may still come", left)
			}
			// Each of the three extensions was one EVALSHA. After the first there was also an EVAL, because the script was not
			// cached.
			stats := outside.Info(t.Context(), "commandstats").Val()
			if !strings.Contains(stats, "cmdstat_evalsha:calls=3,") {
				t.Errorf("three extensions were not three commands: %s", stats)
			}
		})
	}
}
