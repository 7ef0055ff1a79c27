package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// startTimeout bounds a start on the slowest of machines.
const startTimeout = 30 * time.Second

// program is the etcd that is started.
func program() (string, error) {
	name := cmp.Or(os.Getenv("LOCKBENCH_ETCD_SERVER"), "etcd")
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%w: there is no etcd to start: apt-get install etcd-server, or give an address with etcd://host:port (%w)", store.ErrUnreachable, err)
	}
	return filepath.Abs(path)
}

// old are the versions without --unsafe-no-fsync.
var old = regexp.MustCompile(`etcd Version: 3\.[0-4]\.`)

// losing are the arguments for a durability.
func losing(ctx context.Context, path string, d store.Durability) ([]string, error) {
	if d != store.InMemory {
		return nil, nil
	}
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%w: ask %s for its version: %w", store.ErrUnreachable, path, err)
	}
	if old.Match(version) {
		return nil, fmt.Errorf("%w: --durability memory needs etcd 3.5 or later, which can go on without waiting for the disk; %s is an older one, and LOCKBENCH_ETCD_SERVER may name another",
			store.ErrConfig, path)
	}
	return []string{"--unsafe-no-fsync"}, nil
}

// start starts so many members, all at once: none is ready before most are.
func (s *Server) start(ctx context.Context, n int, d store.Durability) error {
	path, err := program()
	if err != nil {
		return err
	}
	more, err := losing(ctx, path, d)
	if err != nil {
		return err
	}
	s.description.Durability = string(store.Synced)
	if len(more) > 0 {
		s.description.Durability = string(store.InMemory)
	}
	for range 5 { // somebody may take one of the ports
		if err = s.startOnce(ctx, path, n, more); err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	return nil
}

func (s *Server) startOnce(ctx context.Context, path string, n int, more []string) error {
	ports, err := freePorts(2 * n)
	if err != nil {
		return err
	}
	var cluster []string
	for i := range n {
		cluster = append(cluster, fmt.Sprintf("m%d=http://127.0.0.1:%d", i, ports[n+i]))
	}
	processes, faults := make([]*launch.Process, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			processes[i], faults[i] = launch.Start(ctx, launch.Program{
				Name: "etcd", Path: path, Args: func(p *launch.Process) []string {
					_, peer, _ := strings.Cut(cluster[i], "=")
					return append([]string{
						"--name", fmt.Sprint("m", i), "--data-dir", dataDir, "--logger", "zap", "--log-level", "error",
						"--listen-client-urls", "http://" + p.Addr(), "--advertise-client-urls", "http://" + p.Addr(),
						"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
						"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-token", "lockbench-" + s.runID,
					}, more...)
				},
				Ready: ready,
			}, func() (int, error) { return ports[i], nil }, s.runID)
		})
	}
	all.Wait()
	if err := errors.Join(faults...); err != nil {
		for _, p := range processes {
			if p != nil {
				err = errors.Join(err, p.Close(ctx))
			}
		}
		return err
	}
	for _, p := range processes {
		s.members = append(s.members, &member{endpoint: p.Addr(), own: p})
	}
	return nil
}

// dataDir is below a process's directory.
const dataDir = "data"

// freePorts are different ones.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	taken := map[int]bool{}
	for len(ports) < n {
		port, err := launch.FreePort()
		if err != nil {
			return nil, err
		}
		if !taken[port] {
			taken[port], ports = true, append(ports, port)
		}
	}
	return ports, nil
}

// ready waits until a member answers with the others' consent.
func ready(ctx context.Context, p *launch.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client, err := dial(clientConfig(address{endpoints: []string{p.Addr()}}), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := ask(attempt, client)
		cancel()
		switch {
		case err == nil:
			return nil
		case p.Ended(ctx):
			return errors.New(lastLine(p.Log(ctx)))
		case ctx.Err() != nil:
			return fmt.Errorf("it is not ready: %w (%s)", err, lastLine(p.Log(ctx)))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// lastLine is what a log says in the end.
func lastLine(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return cmp.Or(strings.TrimSpace(lines[len(lines)-1]), "it said nothing")
}
