package zookeeper

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/strategies/gozk"
)

func unreachable(t *testing.T, err error, said string) {
	t.Helper()
	fails(t, err, store.ErrUnreachable, said)
}

// fails expects an error of that kind, which says something.
func fails(t *testing.T, err, kind error, said string) {
	t.Helper()
	if !errors.Is(err, kind) || !strings.Contains(err.Error(), said) {
		t.Errorf("error %v, want %q with %q", err, kind, said)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("it tells a password: %v", err)
	}
}

func TestOwnServer(t *testing.T) {
	s := common(t)
	about := s.Describe()
	if about.Name != "zookeeper" || about.Version == "" || about.Source != "process" || about.Topology != "single" ||
		about.Mode != "standalone" || about.Durability != "fsync" || about.Network != "loopback" || len(about.AllowedCPUs) == 0 || !s.Local() || !s.node.Standalone {
		t.Errorf("it is %+v", about)
	}
	for what, err := range map[string]error{"ping": s.Ping(t.Context()), "settle": s.Settle(t.Context())} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if limits, err := s.Limits(t.Context()); err != nil || limits.MaxClients < 500 || limits.Connected < 1 {
		t.Errorf("limits %+v, %v", limits, err)
	}
	times, err := s.RoundTrips(t.Context(), "lockbench:floor")
	if err != nil || times.PingP50 == nil || times.ScriptP50 == nil || *times.PingP50 <= 0 || *times.ScriptP50 < *times.PingP50 || *times.PingP99 < *times.PingP50 {
		t.Fatalf("round trips %+v, %v", times, err)
	}
	t.Logf("read %v, write %v", time.Duration(*times.PingP50), time.Duration(*times.ScriptP50))
	if ids := s.RunIDs(); len(ids) != 1 || ids[0] == "" {
		t.Errorf("run ids %q", ids)
	}
}

// content is all that is in a server's tree, and how many are connected.
func content(t *testing.T, addr string) (nodes []string, sessions int64) {
	t.Helper()
	session, err := gozk.Node{Servers: []string{addr}}.Connect(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var list func(path string)
	list = func(path string) {
		children, err := session.Children(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			below := strings.TrimSuffix(path, "/") + "/" + child
			nodes = append(nodes, below)
			list(below)
		}
	}
	list("/")
	slices.Sort(nodes)
	answer, err := ask(t.Context(), dialer, addr, "mntr")
	if err != nil {
		t.Fatal(err)
	}
	return nodes, fields(answer)["zk_global_sessions"]
}

// A user's server is the same after a run as before, with a root of one's own too.
func TestUsersServerIsLeftAlone(t *testing.T) {
	t.Parallel()
	own := open(t, store.Options{})
	addr := own.Describe().Address
	session, err := gozk.Node{Servers: []string{addr}}.Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, path := range []string{"/theirs", "/theirs/node", "/theirs/lockbench", "/lockbench:{theirs"} {
		if _, err := session.Create(t.Context(), path, []byte("theirs"), zk.FlagPersistent); err != nil {
			t.Fatal(err)
		}
	}
	roots := []string{"", "/theirs"}
	if extent.Thorough() {
		roots = append(roots, "/theirs/node")
	}
	for _, root := range roots {
		before, sessions := content(t, addr)
		s, err := opened(t.Context(), store.NewRunID(), store.Options{Address: "zk://" + addr + root})
		if err != nil {
			t.Fatal(err)
		}
		if about := s.Describe(); about.Source != "address" || about.Address != addr || about.Version == "" {
			t.Errorf("it is %+v", about)
		}
		if got := run(t, s, nil); got.Server.Whole.CPU != nil {
			t.Errorf("the CPU of a user's server is not known, and is said to be %v", *got.Server.Whole.CPU)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := s.Close(ended); err != nil {
			t.Error(err)
		}
		after, now := content(t, addr)
		if !slices.Equal(before, after) || sessions != now {
			t.Errorf("root %q: there were %q with %d sessions, and are %q with %d", root, before, sessions, after, now)
		}
	}
}

// says is a server that answers to each line, or to each connection, with one.
func says(t *testing.T, answer string) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { // nobody waits until another has been answered
				if answer != "" {
					_, _ = bufio.NewReader(conn).ReadString('\n')
					_, _ = conn.Write([]byte(answer))
				}
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return listener.Addr().String()
}

func TestErrorsOfOpen(t *testing.T) {
	t.Parallel()
	addr := common(t).Describe().Address
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, c := range map[string]struct {
		options store.Options
		kind    error
		said    string
	}{
		"nothing there":        {store.Options{Address: "zk://127.0.0.1:1"}, store.ErrUnreachable, "connection refused"},
		"no answer":            {store.Options{Address: "zk://" + silent.Addr().String()}, store.ErrUnreachable, "deadline"},
		"a Redis":              {store.Options{Address: "zk://" + says(t, "-ERR unknown command 'srvr'\r\n")}, store.ErrConfig, "no ZooKeeper"},
		"it hangs up":          {store.Options{Address: "zk://" + says(t, "")}, store.ErrConfig, "hung up"},
		"no quorum":            {store.Options{Address: "zk://" + says(t, "This ZooKeeper instance is not currently serving requests\n")}, store.ErrUnreachable, "quorum"},
		"read-only":            {store.Options{Address: "zk://" + says(t, "Zookeeper version: 3.8.0\nMode: read-only\n")}, store.ErrUnreachable, "only reads"},
		"no such root":         {store.Options{Address: "zk://" + addr + "/nowhere"}, store.ErrConfig, "/nowhere"},
		"another topology":     {store.Options{Address: "zk://" + addr, Topology: "zookeeper:3"}, store.ErrConfig, "zookeeper:3"},
		"two of them":          {store.Options{Address: "zk://" + addr + "," + addr}, store.ErrConfig, "alone"},
		"a password in pieces": {store.Options{Address: "zk://user:secret%zz@127.0.0.1:1"}, store.ErrConfig, "percent-encode"},
		"another store":        {store.Options{Address: "redis://:secret@127.0.0.1:1"}, store.ErrConfig, "zk://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait
			ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
			defer cancel()
			_, err := opened(ctx, "test", c.options)
			fails(t, err, c.kind, c.said)
			if ctx.Err() != nil {
				t.Error("it waited for as long as it might")
			}
		})
	}
}

// Who may not make nodes is told that, and who may does, from the address and from the
// environment.
func TestUser(t *testing.T) {
	addr := common(t).Describe().Address
	const root = "/guarded"
	session, err := gozk.Node{Servers: []string{addr}, Auth: "user:the secret"}.Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.Create(t.Context(), root, nil, zk.FlagPersistent); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Delete(context.Background(), root) }()
	for _, auth := range []string{"", "user:secret@", "nobody:the%20secret@"} {
		_, err := opened(t.Context(), "test", store.Options{Address: "zk://" + auth + addr + root})
		fails(t, err, store.ErrConfig, "user or password")
	}
	right := open(t, store.Options{Address: "zk://user:the%20secret@" + addr + root})
	run(t, right, nil)
	t.Setenv(authEnv, "user:the secret")
	open(t, store.Options{Address: "zk://" + addr + root})
}

func TestNothingToStart(t *testing.T) {
	t.Run("no Java", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		t.Setenv("JAVA_HOME", "")
		_, err := opened(t.Context(), "test", store.Options{})
		unreachable(t, err, "apt-get install zookeeper")
	})
	t.Run("no ZooKeeper", func(t *testing.T) {
		t.Setenv(serverEnv, t.TempDir())
		_, err := opened(t.Context(), "test", store.Options{})
		unreachable(t, err, serverEnv)
	})
}

// Another ZooKeeper is one's own directory, as Apache's distribution is.
func TestOtherServer(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, jar := range debian {
		if err := os.Symlink(jar, filepath.Join(dir, "lib", filepath.Base(jar))); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(serverEnv, dir)
	s := open(t, store.Options{Durability: store.InMemory, Pin: true})
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	about := s.Describe()
	if about.Durability != "memory" || len(about.PinnedCPUs) != 1 || !slices.Equal(about.PinnedCPUs, about.AllowedCPUs) || len(s.GeneratorCPUs()) == 0 {
		t.Errorf("it is %+v", about)
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.own[0].PID()))
	if err != nil || !strings.Contains(string(command), "-Dzookeeper.forceSync=no") {
		t.Errorf("it runs as %q, %v", command, err)
	}
}

// A start that fails says what the server said, and leaves nothing.
func TestFailedStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	found, err := lookUp()
	if err != nil {
		t.Fatal(err)
	}
	found.jars = "/nowhere"
	begin := func(ctx context.Context, m member) (launch.Started, error) {
		return launch.Start(ctx, m.program(), m.pick, "test")
	}
	_, err = startAll(t.Context(), 1, member{software: found}, begin)
	if err == nil || !strings.Contains(err.Error(), "QuorumPeerMain") {
		t.Errorf("error %v", err)
	}
	_, err = startAll(t.Context(), 3, member{software: found}, begin)
	if err == nil || !strings.Contains(err.Error(), "QuorumPeerMain") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := opened(ctx, "test", store.Options{Topology: "zookeeper:3"}); err == nil {
		t.Error("it started with a context that had ended")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
		t.Errorf("leftovers: %v", left)
	}
}
