package zookeeper

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type server struct {
	dir  string
	port int
	cmd  *exec.Cmd
}

var shared *server

func TestMain(m *testing.M) {
	shared = startServer()
	code := m.Run()
	shared.stop()
	os.RemoveAll(shared.dir)
	os.Exit(code)
}

func startServer() *server {
	dir, _ := os.MkdirTemp("", "zkt")
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	s := &server{dir: dir, port: port}
	os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(fmt.Sprintf("tickTime=100\ninitLimit=50\nsyncLimit=20\ndataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\nmaxSessionTimeout=3600000\n", filepath.Join(dir, "data"), port)), 0o600)
	s.start()
	return s
}

func (s *server) addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

func (s *server) start() {
	s.cmd = exec.Command("java", "-Xmx256m", "-cp", "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.quorum.QuorumPeerMain", "zoo.cfg")
	s.cmd.Dir = s.dir
	if err := s.cmd.Start(); err != nil {
		panic(err)
	}
	for range 200 {
		time.Sleep(50 * time.Millisecond)
		if strings.Contains(s.ask("srvr"), "Mode:") {
			return
		}
	}
	panic("no server")
}

func (s *server) stop() { s.cmd.Process.Kill(); s.cmd.Wait() }

func (s *server) ask(word string) string {
	c, err := net.Dial("tcp", s.addr())
	if err != nil {
		return ""
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	c.Write([]byte(word + "\n"))
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}
