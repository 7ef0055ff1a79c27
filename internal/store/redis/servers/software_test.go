package servers

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// A strategy does not fit a server that is too old for it, whatever the topology.
func TestTooOld(t *testing.T) {
	needy := strategies.Info{Nodes: 1, Since: strategies.Since{Redis: "7.0", For: "sharded channels"}}
	for version, want := range map[string]string{
		"6.2.14": "it needs Redis 7.0 (sharded channels), this is 6.2.14", "7.0.0": "", "8.0.2": "", "10.1": "", "": "",
	} {
		s := &Server{topology: Topology{Kind: Single}, nodes: []*node{{}}}
		s.nodes[0].software.Software = goredis.SoftwareOf(replies.ParseInfo("redis_version:"+version), nil)
		if got := s.Unfit(needy); got != want {
			t.Errorf("on %q it is unfit by %q, want %q", version, got, want)
		}
		if got := s.Unfit(strategies.Info{Nodes: 1}); got != "" {
			t.Errorf("a strategy without needs does not fit %q: %s", version, got)
		}
	}
}

// The program to start is the one asked for, else Redis, else Valkey.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
		return file
	}
	t.Setenv("PATH", dir)
	t.Setenv("LOCKBENCH_REDIS_SERVER", "")
	if _, err := lookProgram(""); err == nil {
		t.Error("a program was found where there is none")
	}
	valkey := put("valkey-server")
	if found, err := lookProgram(""); err != nil || found != valkey {
		t.Errorf("%s, %v", found, err)
	}
	redis := put("redis-server")
	if found, err := lookProgram(""); err != nil || found != redis {
		t.Errorf("%s, %v", found, err)
	}
	t.Setenv("LOCKBENCH_REDIS_SERVER", "valkey-server")
	if found, err := lookProgram(""); err != nil || found != valkey {
		t.Errorf("%s, %v", found, err)
	}
	t.Setenv("LOCKBENCH_REDIS_SERVER", "/none/server")
	if _, err := lookProgram(""); err == nil || !strings.Contains(err.Error(), "LOCKBENCH_REDIS_SERVER") {
		t.Errorf("%v does not name the variable", err)
	}
	for image, program := range map[string]string{
		"redis:8": "redis-server", "valkey/valkey:9.1": "valkey-server", "valkey": "valkey-server", "bitnami/valkey:8": "valkey-server",
		"eqalpha/keydb": "keydb-server", "lockbench-redis:local-12": "redis-server", "host:5000/redis": "redis-server",
	} {
		if got := programIn(image); got != program {
			t.Errorf("%s starts %s, want %s", image, got, program)
		}
	}
}

// impostor is a starting server whose port somebody else has.
type impostor struct {
	addr string
	ends bool
}

func (i impostor) Addr() string               { return i.addr }
func (impostor) Log(context.Context) string   { return "Failed listening on port" }
func (i impostor) Ended(context.Context) bool { return i.ends }

// A stranger who answers on the port is not taken for the server that was started.
func TestAStrangerIsNotReady(t *testing.T) {
	p := process(t)
	not := func(replies.Info) bool { return false }
	err := awaitReady(t.Context(), impostor{p.Addr(), true}, "", not)
	if err == nil || !strings.Contains(err.Error(), "Failed listening") {
		t.Errorf("a Redis of somebody else's was taken for ours: %v", err)
	}
	if err := awaitReady(t.Context(), p, "", isProcess(p.Process)); err != nil {
		t.Errorf("our own was not: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := awaitReady(ctx, impostor{p.Addr(), false}, "", not); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// A cluster whose INFO says server_mode, as Valkey's does, is a cluster by any address.
func TestAClusterThatSaysServerMode(t *testing.T) {
	cluster := open(t, Options{Address: "process", Topology: "cluster:3"})
	address := valkeyLike(t, cluster.nodes[0].addr())
	s := open(t, Options{Address: "redis://:" + cluster.password + "@" + address})
	if s.Topology() != (Topology{Clustered, 3}) {
		t.Errorf("it was taken for %v", s.Topology())
	}
	if about := s.Describe(); about.Mode != "cluster" || about.Protocol != 3 || about.IOThreads == nil || *about.IOThreads != 1 {
		t.Errorf("it was described as %+v", about)
	}
}

// valkeyLike passes everything on to a Redis, whose INFO it words as Valkey does.
func valkeyLike(t *testing.T, addr string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go reworded(client, addr)
		}
	}()
	return listener.Addr().String()
}

func reworded(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		buffer := make([]byte, 64<<10)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				_ = server.Close()
				return
			}
			_, _ = server.Write(buffer[:n])
		}
	}()
	buffer := make([]byte, 256<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		text := string(buffer[:n])
		if strings.Contains(text, "redis_mode:") { // as long as before, because a reply begins with its length
			text = strings.Replace(strings.Replace(text, "# Server\r\n", "# Serve\r\n", 1), "redis_mode:", "server_mode:", 1)
		}
		if _, err := client.Write([]byte(text)); err != nil {
			return
		}
	}
}
