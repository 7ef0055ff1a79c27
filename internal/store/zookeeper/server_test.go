package zookeeper

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/strategies/gozk"
)

func TestOwnServer(t *testing.T) {
	s := common(t)
	about := s.Describe()
	if about.Name != "zookeeper" || about.Version == "" || about.Source != "process" || about.Topology != "single" ||
		about.Mode != "standalone" || about.Durability != "fsync" || about.Network != "loopback" || !s.Local() {
		t.Errorf("it is %+v", about)
	}
	times, err := s.RoundTrips(t.Context(), "lockbench:floor")
	if err != nil || times.PingP50 == nil || times.ScriptP50 == nil ||
		*times.PingP50 <= 0 || *times.PingP99 < *times.PingP50 {
		t.Errorf("round trips %+v, %v", times, err)
	}
}

func TestServerInMemory(t *testing.T) {
	s := open(t, store.Options{Durability: store.InMemory})
	if about := s.Describe(); about.Durability != "memory" {
		t.Errorf("it is %+v", about)
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.Own[0].PID()))
	if err != nil || !strings.Contains(string(command), "-Dzookeeper.forceSync=no") {
		t.Errorf("it runs as %q, %v", command, err)
	}
}

// serverThatReplies returns the address of a server that reads one line from each connection, replies with answer and
// closes it. Without an answer, the server closes each connection at once.
func serverThatReplies(t *testing.T, answer string) (addr string) {
	t.Helper()
	return "zk://" + drive.Serve(t, func(conn net.Conn) {
		if answer != "" {
			_, _ = bufio.NewReader(conn).ReadString('\n')
			_, _ = conn.Write([]byte(answer))
		}
	})
}

func TestErrorsOfOpen(t *testing.T) {
	t.Parallel()
	addr := common(t).Describe().Address
	const notServing = "This ZooKeeper instance is not currently serving requests\n"
	const readOnly = "Zookeeper version: 3.8.0\nMode: read-only\n"
	for name, c := range map[string]struct {
		address, topology string
		kind              error
		said              string
	}{
		"nothing there":        {"zk://127.0.0.1:1", "", store.ErrUnreachable, "connection refused"},
		"it hangs up":          {serverThatReplies(t, ""), "", store.ErrUnreachable, "127.0.0.1"},
		"no quorum":            {serverThatReplies(t, notServing), "", store.ErrUnreachable, "quorum"},
		"read-only":            {serverThatReplies(t, readOnly), "", store.ErrUnreachable, "writes"},
		"no such root":         {"zk://" + addr + "/nowhere", "", store.ErrConfig, "/nowhere"},
		"another topology":     {"zk://" + addr, "zookeeper:3", store.ErrConfig, "zookeeper:3"},
		"two of them":          {"zk://" + addr + "," + addr, "", store.ErrConfig, "alone"},
		"a password in pieces": {"zk://user:secret%zz@127.0.0.1:1", "", store.ErrConfig, "percent-encode"},
		"another store":        {"redis://:secret@127.0.0.1:1", "", store.ErrConfig, "zk://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for its timeout
			ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
			defer cancel()
			_, err := opened(ctx, "test", store.Options{Address: c.address, Topology: c.topology})
			fails(t, err, c.kind, c.said)
			if ctx.Err() != nil {
				t.Error("it waited for as long as it might")
			}
		})
	}
}

// TestUser opens a ZooKeeper at a node below which only one user may create nodes. Open must succeed if the address or
// the environment names this user and the password. If the user or the password is missing or wrong, the error must say
// so.
func TestUser(t *testing.T) {
	addr := common(t).Describe().Address
	const root = "/guarded"
	session := connect(t, gozk.Node{Servers: []string{addr}, Auth: "user:the secret"})
	if _, err := session.Create(t.Context(), root, nil, zk.FlagPersistent); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // runs after the clean-ups of the servers below
		if err := session.Delete(context.Background(), root); err != nil {
			t.Error(err)
		}
	})
	for _, auth := range []string{"", "user:secret@", "nobody:the%20secret@"} {
		_, err := opened(t.Context(), "test", store.Options{Address: "zk://" + auth + addr + root})
		fails(t, err, store.ErrConfig, "user or password")
	}
	right := open(t, store.Options{Address: "zk://user:the%20secret@" + addr + root})
	run(t, right, nil)
	t.Setenv(authEnv, "user:the secret")
	open(t, store.Options{Address: "zk://" + addr + root})
}

// ZooKeeper cannot start, because its main class or its package is missing. The error must quote the server's log or
// name the package to install. No file may be left, even if the start is interrupted.
func TestFailedStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	before := jars
	jars = before[1:] // without ZooKeeper itself
	for _, topology := range []string{"single", "zookeeper:3"} {
		_, err := opened(t.Context(), "test", store.Options{Address: "process", Topology: topology})
		fails(t, err, store.ErrUnreachable, "QuorumPeerMain")
	}
	jars = []string{before[0] + ".not-there"}
	_, err := opened(t.Context(), "test", store.Options{})
	fails(t, err, store.ErrUnreachable, "apt-get install zookeeper")
	jars = before
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := opened(ctx, "test", store.Options{Topology: "zookeeper:3"}); err == nil {
		t.Error("it started with a context that had ended")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("leftovers: %v", left)
	}
}
