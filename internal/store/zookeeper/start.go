package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
)

// jars are those of Debian's package, as in its zkEnv.sh, and one for the log.
var jars = []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// installed returns the Java that runs ZooKeeper on this machine.
func installed() (java string, err error) {
	java, err = exec.LookPath("java")
	if err == nil {
		_, err = os.Stat(jars[0])
	}
	if err != nil {
		return "", fmt.Errorf("find a Java and ZooKeeper: apt-get install zookeeper: %w", err)
	}
	return java, nil
}

// start starts servers.
func (s *Server) start(ctx context.Context, o store.Options) (err error) {
	s.about, err = s.Start(ctx, ensemble.Fleet{
		Members: s.Members, Ports: 3, Program: installed, ProcessFirst: true, // an image with Java is large
		Image:  launch.Image{Variable: "LOCKBENCH_ZOOKEEPER_IMAGE", Default: "zookeeper:3.9"},
		Taken:  func(err error) bool { return strings.Contains(err.Error(), "Address already in use") },
		Server: func(at ensemble.Place) launch.Server { return member{at, o.Durability}.server() },
	}, o, s.runID)
	s.about.Why += "; it ticks every 100 ms, in place of 2 s"
	for _, o := range s.Own {
		s.node.Servers = append(s.node.Servers, o.Addr())
	}
	return err
}

// member is a server to be started at its place.
type member struct {
	ensemble.Place
	durability store.Durability // of confirmed writes; by default they are on the disk
}

// containerDir holds a server's files in a container.
const containerDir = "/lockbench"

func (m member) server() launch.Server {
	return launch.Server{
		Name: "java", Args: m.options, Ready: ready,
		Process: launch.Program{Prepare: m.write, Empty: m.write},
		Container: launch.Container{
			// root owns these files in every image
			Inside: 2181, Files: m.files, Entrypoint: []string{"java"}, User: "0",
		},
	}
}

// options returns Java's arguments. In a container its jars are relative to the working directory of
// ZooKeeper's own image.
func (m member) options(at launch.Place) []string {
	dir, jars := at.Dir, strings.Join(jars, ":")
	if at.Image != "" {
		dir, jars = containerDir, "lib/*"
	}
	sync := "yes"
	if m.durability == store.InMemory {
		sync = "no"
	}
	return []string{
		"-Xmx256m", "-XX:-UsePerfData", "-Djava.io.tmpdir=" + dir, // it writes only to its own directory
		"-classpath", dir + ":" + jars, "-Dzookeeper.forceSync=" + sync,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"),
	}
}

// settings are those of every server. A tick of 100 ms, instead of the usual 2 s, allows session
// timeouts from 200 ms on, which are at most one tick late. Members may be out of contact with
// their leader for 2 s.
const settings = `tickTime=100
initLimit=100
syncLimit=20
maxSessionTimeout=3600000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=mntr,srvr,ruok,stat,isro,dump,cons,conf
`

// files returns the server's files by path. Those of a logger make it write warnings and errors only:
// slf4j-simple in Debian's package, logback in ZooKeeper's own image.
func (m member) files(at launch.Place) map[string]string {
	dir := cmp.Or(at.Dir, containerDir)
	config := settings + fmt.Sprintf("clientPortAddress=%s\ndataDir=%s/data\nclientPort=%d\n", at.Bind, dir, at.Port)
	for i, ports := range m.Ports {
		if len(m.Ports) > 1 { // those for quorum and election
			config += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", i+1, ports[1], ports[2])
		}
	}
	return map[string]string{
		dir + "/zoo.cfg":                 config,
		dir + "/data/myid":               fmt.Sprintln(m.Number + 1),
		dir + "/simplelogger.properties": "org.slf4j.simpleLogger.defaultLogLevel=warn\n",
		dir + "/logback.xml": `<configuration><appender name="C" class="ch.qos.logback.core.ConsoleAppender">` +
			`<encoder><pattern>%p %logger{0} - %m%n</pattern></encoder></appender>` +
			`<root level="WARN"><appender-ref ref="C"/></root></configuration>`,
	}
}

// write writes the files of a server that does not run, in place of its data.
func (m member) write(_ context.Context, p *launch.Process) error {
	data := filepath.Join(p.Dir(), "data")
	if err := errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o700)); err != nil {
		return err
	}
	for file, text := range m.files(p.Place()) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until the server serves clients; in an ensemble this needs a leader.
func ready(ctx context.Context, p launch.Starting) error {
	lastWords := func(log string) string {
		last := "it said nothing"
		for line := range strings.Lines(log) {
			if line = strings.TrimSpace(line); strings.Contains(line, "Exception") || strings.HasPrefix(line, "Error") {
				last = line
			}
		}
		return last
	}
	return launch.Await(ctx, p, lastWords, func(ctx context.Context) error {
		_, err := look(ctx, dialer, p.Addr())
		return err
	})
}
