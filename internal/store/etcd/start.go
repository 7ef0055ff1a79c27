package etcd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

const (
	dataDir = "data" // in the working directory of a process
	noSync  = "--unsafe-no-fsync"
)

// program returns the absolute path of the etcd that LOCKBENCH_ETCD_SERVER names, or of the one on PATH.
func program() (string, error) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("LOCKBENCH_ETCD_SERVER"), "etcd"))
	if err != nil {
		return "", fmt.Errorf("etcd is not installed: apt-get install etcd-server, "+
			"or give an address with etcd://host:port (%w)", err)
	}
	return filepath.Abs(path)
}

// start starts the members that the options request, and records their addresses.
func (s *Server) start(ctx context.Context, o store.Options) (err error) {
	more := []string{"--initial-cluster-token", "lockbench-" + s.RunID}
	if o.Durability == store.InMemory {
		more = append(more, noSync)
	}
	err = s.Start(ctx, launch.Fleet{
		Members: s.Members, Ports: launch.FreePorts(2), Program: program,
		Taken: "address already in use",
		Server: func(place int, ports [][]int) launch.Definition {
			return launch.Definition{
				Name: "etcd", Ready: ready, Args: func(launch.Location) []string { return arguments(place, ports, more) },
				Process: launch.Program{Empty: func(_ context.Context, p *launch.Process) error {
					return os.RemoveAll(filepath.Join(p.Dir(), dataDir))
				}},
			}
		},
	}, o)
	for _, own := range s.Own {
		s.to.endpoints = append(s.to.endpoints, own.Addr())
	}
	if err != nil && strings.Contains(err.Error(), strings.Trim(noSync, "-")) {
		return fmt.Errorf("%w: --durability memory needs an etcd version that has the option %s, such as 3.5: "+
			"name its program in LOCKBENCH_ETCD_SERVER: %w", store.ErrConfig, noSync, err)
	}
	return err
}

// arguments returns the command-line arguments of the member with the index place.
func arguments(place int, ports [][]int, more []string) []string {
	var cluster []string
	for n, of := range ports {
		cluster = append(cluster, fmt.Sprintf("m%d=http://127.0.0.1:%d", n, of[1]))
	}
	_, peer, _ := strings.Cut(cluster[place], "=")
	client := fmt.Sprintf("http://127.0.0.1:%d", ports[place][0])
	return append([]string{
		"--name", fmt.Sprint("m", place), "--data-dir", dataDir, "--logger", "zap", "--log-level", "error",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", strings.Join(cluster, ","),
	}, more...)
}

// ready waits until a member replies to a read that a majority confirms.
func ready(ctx context.Context, p launch.Starting) error {
	client, err := clientv3.New(address{endpoints: []string{p.Addr()}}.config(nil))
	if err != nil {
		return err
	}
	defer client.Close()
	return launch.Await(ctx, p, launch.LastLine, func(ctx context.Context) error { return readFromMajority(ctx, client) })
}
