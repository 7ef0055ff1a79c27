package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// jars are the jars that zkEnv.sh of Debian's package lists, and a jar for logging.
var jars = []string{"/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"}

// installed returns the path of the Java that runs ZooKeeper. It returns an error if Java or ZooKeeper is not
// installed.
func installed() (java string, err error) {
	java, err = exec.LookPath("java")
	if err == nil {
		_, err = os.Stat(jars[0])
	}
	if err != nil {
		return "", fmt.Errorf("find Java and ZooKeeper (apt-get install zookeeper): %w", err)
	}
	return java, nil
}

// start starts the servers that the options request, and records their addresses.
func (s *Server) start(ctx context.Context, o store.Options) (err error) {
	err = s.Start(ctx, launch.Fleet{
		Members: s.Members, Ports: launch.FreePorts(3), Program: installed,
		Taken: "Address already in use",
		Server: func(place int, ports [][]int) launch.Definition {
			write := func(_ context.Context, p *launch.Process) error { return writeFiles(p, place, ports) }
			return launch.Definition{
				Name: "java", Ready: ready,
				Args:    func(at launch.Location) []string { return arguments(at.Dir, o.Durability) },
				Process: launch.Program{Prepare: write, Empty: write},
			}
		},
	}, o)
	s.About.Why += "; its tickTime is 100 ms instead of 2 s"
	for _, o := range s.Own {
		s.node.Servers = append(s.node.Servers, o.Addr())
	}
	return err
}

// arguments returns the arguments of java, with which ZooKeeper writes only to the server's directory.
func arguments(dir string, durability store.Durability) []string {
	sync := "yes"
	if durability == store.InMemory {
		sync = "no"
	}
	return []string{
		"-Xmx256m", "-XX:-UsePerfData", "-Djava.io.tmpdir=" + dir,
		"-classpath", dir + ":" + strings.Join(jars, ":"), "-Dzookeeper.forceSync=" + sync,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"),
	}
}

// settings are common to all servers. A tick of 100 ms, instead of the default 2 s, permits session timeouts as short
// as 200 ms. A session expires at most one tick late. A member may be out of contact with its leader for syncLimit ×
// 100 ms = 2 s.
const settings = `tickTime=100
initLimit=100
syncLimit=20
maxSessionTimeout=3600000
maxClientCnxns=0
clientPortAddress=127.0.0.1
admin.enableServer=false
4lw.commands.whitelist=mntr,srvr,ruok,stat,isro,dump,cons,conf
`

// writeFiles deletes the data of server number place, which must not be running, and writes its configuration files.
// The logger prints only warnings and errors.
func writeFiles(p *launch.Process, place int, ports [][]int) error {
	data := filepath.Join(p.Dir(), "data")
	config := settings + fmt.Sprintf("dataDir=%s\nclientPort=%d\n", data, ports[place][0])
	for i, of := range ports {
		if len(ports) > 1 { // ports for the quorum and for elections
			config += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", i+1, of[1], of[2])
		}
	}
	err := errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o700))
	for file, text := range map[string]string{
		"zoo.cfg":                 config,
		"data/myid":               fmt.Sprintln(place + 1),
		"simplelogger.properties": "org.slf4j.simpleLogger.defaultLogLevel=warn\n",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(p.Dir(), file), []byte(text), 0o600))
	}
	return err
}

// ready waits until the server serves clients. A member of an ensemble serves clients only if the ensemble has a
// leader.
func ready(ctx context.Context, p launch.Starting) error {
	lastWords := func(log string) string {
		last := "the server printed nothing"
		for line := range strings.Lines(log) {
			if line = strings.TrimSpace(line); strings.Contains(line, "Exception") || strings.HasPrefix(line, "Error") {
				last = line
			}
		}
		return last
	}
	return launch.Await(ctx, p, lastWords, func(ctx context.Context) error {
		_, err := readStatus(ctx, dialer, p.Addr())
		return err
	})
}
