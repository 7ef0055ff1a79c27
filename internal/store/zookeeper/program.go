package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// serverEnv names the directory of another ZooKeeper than Debian's: Apache's distribution, or jar files.
const serverEnv = "LOCKBENCH_ZOOKEEPER_SERVER"

// debian are the jar files of Debian's package, as in its zkEnv.sh, and one for the log.
var debian = []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// errNotThere says what is missing, and how to install it.
var errNotThere = errors.New("it is not there: apt-get install zookeeper")

// software is what is needed to run a server.
type software struct {
	java string
	jars string // for -classpath
}

// lookUp finds ZooKeeper and Java on this machine.
func lookUp() (software, error) {
	java, err := exec.LookPath("java")
	if home := os.Getenv("JAVA_HOME"); home != "" {
		java, err = exec.LookPath(filepath.Join(home, "bin", "java"))
	}
	if err != nil {
		return software{}, fmt.Errorf("find a Java to run ZooKeeper: %w", errNotThere)
	}
	if dir := os.Getenv(serverEnv); dir != "" {
		for _, pattern := range []string{"zookeeper*.jar", "lib/zookeeper*.jar"} {
			if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
				return software{java, filepath.Join(dir, "*") + ":" + filepath.Join(dir, "lib", "*")}, nil
			}
		}
		return software{}, fmt.Errorf("%s: there is no zookeeper*.jar in %s or its lib", serverEnv, dir)
	}
	if _, err := os.Stat(debian[0]); err != nil {
		return software{}, fmt.Errorf("find ZooKeeper: %s: %w", debian[0], errNotThere)
	}
	return software{java, strings.Join(debian, ":")}, nil
}

// member is a server to be started.
type member struct {
	software
	durability store.Durability // of confirmed writes; by default they are on the disk
	cpus       []int
	id         int     // from 1
	port       int     // for clients
	ensemble   []ports // of all members; empty for a single server
}

// ports are those on which a member meets the others.
type ports struct{ quorum, election int }

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

const (
	configFile = "zoo.cfg"
	dataDir    = "data"
)

// quiet configures each distribution's logger to write warnings and errors only.
var quiet = map[string]string{
	"simplelogger.properties": "org.slf4j.simpleLogger.defaultLogLevel=warn\n",
	"log4j.properties": "log4j.rootLogger=WARN, CONSOLE\nlog4j.appender.CONSOLE=org.apache.log4j.ConsoleAppender\n" +
		"log4j.appender.CONSOLE.layout=org.apache.log4j.PatternLayout\nlog4j.appender.CONSOLE.layout.ConversionPattern=%p %c{1} - %m%n\n",
	"logback.xml": `<configuration><appender name="CONSOLE" class="ch.qos.logback.core.ConsoleAppender"><encoder>` +
		`<pattern>%p %logger{0} - %m%n</pattern></encoder></appender><root level="WARN"><appender-ref ref="CONSOLE"/></root></configuration>` + "\n",
}

func (m member) program() launch.Program {
	return launch.Program{
		Name: name, Path: m.java, Known: []string{"java"}, CPUs: m.cpus,
		Args:    func(p *launch.Process) []string { return m.options(p.Dir(), m.jars) },
		Prepare: m.prepare, Empty: m.empty, Beside: m.beside,
		Ready: func(ctx context.Context, p *launch.Process) error { return ready(ctx, p) },
	}
}

func taken(err error) bool { return strings.Contains(err.Error(), "Address already in use") }

func (m member) pick() (int, error) { return m.port, nil }

// beside returns the ports on which the member meets the others.
func (m member) beside(int) []int {
	if len(m.ensemble) == 0 {
		return nil
	}
	own := m.ensemble[m.id-1]
	return []int{own.quorum, own.election}
}

// options returns Java's arguments; dir holds the server's files.
func (m member) options(dir, jars string) []string {
	args := []string{
		// The server writes only to its own directory.
		"-Xmx256m", "-XX:-UsePerfData", "-Djava.io.tmpdir=" + dir,
		"-classpath", dir + ":" + jars,
	}
	if m.durability == store.InMemory {
		args = append(args, "-Dzookeeper.forceSync=no")
	}
	return append(args, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, configFile))
}

// config returns the server's configuration file.
func (m member) config(dir, bind string, port int) string {
	var config strings.Builder
	fmt.Fprintf(&config, "%sclientPortAddress=%s\ndataDir=%s\nclientPort=%d\n", settings, bind, filepath.Join(dir, dataDir), port)
	for i, e := range m.ensemble {
		fmt.Fprintf(&config, "server.%d=127.0.0.1:%d:%d\n", i+1, e.quorum, e.election)
	}
	return config.String()
}

// prepare writes the server's files.
func (m member) prepare(ctx context.Context, p *launch.Process) error {
	if err := m.empty(ctx, p); err != nil {
		return err
	}
	files := map[string]string{configFile: m.config(p.Dir(), "127.0.0.1", p.Port())}
	maps.Copy(files, quiet)
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(p.Dir(), file), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// empty removes all data of the ended server except its ID.
func (m member) empty(_ context.Context, p *launch.Process) error {
	dir := filepath.Join(p.Dir(), dataDir)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "myid"), fmt.Appendln(nil, m.id), 0o600)
}

// ready waits until the server serves clients; in an ensemble this needs a leader.
func ready(ctx context.Context, p launch.Starting) error {
	return launch.Await(ctx, p, lastWords, func(ctx context.Context) error {
		status, err := look(ctx, dialer, p.Addr())
		if err == nil && !status.serves() {
			err = errors.New("it does not serve clients yet")
		}
		return err
	})
}

// lastWords returns the last line of a log that names an error.
func lastWords(log string) string {
	last := "it said nothing"
	for line := range strings.Lines(log) {
		if line = strings.TrimSpace(line); strings.Contains(line, "Exception") || strings.HasPrefix(line, "Error") {
			last = line
		}
	}
	return last
}
