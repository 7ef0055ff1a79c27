package handoff_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// provider hands out credentials, and counts how often it is asked.
type provider struct{ asked atomic.Int64 }

func (p *provider) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.asked.Add(1)
	return auth.NewBasicCredentials("app", "secret"), func() error { return nil }, nil
}

// All connections of a lock are dialled with the client's options: they ask its StreamingCredentialsProvider for
// credentials, and are set up by its OnConnect. TestDialKeepsOptions has all options.
func TestClientOptionsAreUsed(t *testing.T) {
	each(t, both, func(t *testing.T, variant string) {
		server := redistest.Start(t)
		q := newQueue(t, server)
		q.do("ACL SETUSER app on >secret allkeys allchannels allcommands")
		q.do("ACL SETUSER default -@all +client +acl +ping +info +hello")
		secrets := new(provider)
		options := &redis.UniversalOptions{
			Addrs: []string{server.Addr}, StreamingCredentialsProvider: secrets, DialTimeout: patience,
			OnConnect: func(ctx context.Context, cn *redis.Conn) error { return cn.ClientSetName(ctx, "ours").Err() },
		}
		a, b := open(t, options, variant, time.Hour), open(t, options, variant, time.Hour)
		pass := func() {
			t.Helper()
			lease := acquire(t, a)
			q.join("b", b)
			trial.Release(t, q.turns(lease, "b"))
		}
		pass()
		connections := int64(0)
		for line := range strings.Lines(q.server.ClientList(t.Context()).Val()) {
			if strings.Contains(line, "cmd=client|list") {
				continue // the test's own
			}
			connections++
			if !strings.Contains(line, " name=ours ") || !strings.Contains(line, " user=app ") {
				t.Errorf("a connection that the client's options did not set up: %s", line)
			}
		}
		if asked := secrets.asked.Load(); connections < 2 || asked < connections {
			t.Errorf("%d connections of two processes asked %d times for their credentials", connections, asked)
		}
		disconnect(t, q.server)
		pass()
	})
}

// A right that is missing is named by Prepare, before anybody waits.
func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	q := newQueue(t, server)
	user := strings.Replace(handoff.Rights().SetUser("service", "trial:"), "PASSWORD", "secret", 1)
	options := &redis.UniversalOptions{Addrs: []string{server.Addr}, Username: "service", Password: "secret"}
	for missing, named := range map[string]string{
		"-info":       "", // none
		"-ssubscribe": "ssubscribe", "-evalsha": "evalsha", "-rpushx": "rpushx", "resetkeys": "permission",
		"resetchannels": "permission",
	} {
		q.do(user + " " + missing)
		err := locker(open(t, options, "handoff", time.Hour)).Prepare(t.Context(), nil)
		if (err == nil) != (named == "") || err != nil && !strings.Contains(err.Error(), named) {
			t.Errorf("with %s Prepare returned %v", missing, err)
		}
	}
}
