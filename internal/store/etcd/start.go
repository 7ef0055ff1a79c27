package etcd

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
)

const (
	dataDir = "data" // in a process's directory
	noSync  = "--unsafe-no-fsync"
)

// program returns the path of this machine's etcd.
func program() (string, error) {
	path, err := exec.LookPath(cmp.Or(os.Getenv("LOCKBENCH_ETCD_SERVER"), "etcd"))
	if err != nil {
		return "", fmt.Errorf("there is no etcd to start: apt-get install etcd-server, "+
			"or give an address with etcd://host:port (%w)", err)
	}
	return filepath.Abs(path)
}

// start starts the members.
func (s *Server) start(ctx context.Context, o store.Options) (err error) {
	more := []string{"--initial-cluster-token", "lockbench-" + s.runID}
	if o.Durability == store.InMemory {
		more = append(more, noSync)
	}
	s.description, err = s.Start(ctx, ensemble.Fleet{
		Members: s.Members, Ports: 2, Program: program,
		Image: launch.Image{Variable: "LOCKBENCH_ETCD_IMAGE", Default: "quay.io/coreos/etcd:v3.6.5"},
		Taken: func(err error) bool { return strings.Contains(err.Error(), "address already in use") },
		Server: func(at ensemble.Place) launch.Server {
			return launch.Server{
				Name: "etcd", Ready: ready, Container: launch.Container{Inside: 2379},
				Args: func(in launch.Place) []string { return arguments(at, in, more) },
				Process: launch.Program{Empty: func(_ context.Context, p *launch.Process) error {
					return os.RemoveAll(filepath.Join(p.Dir(), dataDir))
				}},
			}
		},
	}, o, s.runID)
	for _, own := range s.Own {
		s.to.endpoints = append(s.to.endpoints, own.Addr())
	}
	if err != nil && strings.Contains(err.Error(), strings.Trim(noSync, "-")) {
		return fmt.Errorf("%w: --durability memory needs an etcd that knows %s, such as 3.5; "+
			"LOCKBENCH_ETCD_SERVER names another one: %w", store.ErrConfig, noSync, err)
	}
	return err
}

// arguments are those of the member at a place; in a container the program comes first.
func arguments(at ensemble.Place, in launch.Place, more []string) []string {
	peer := func(n int) string { return fmt.Sprintf("http://127.0.0.1:%d", at.Ports[n][1]) }
	var cluster []string
	for n := range at.Ports {
		cluster = append(cluster, fmt.Sprintf("m%d=%s", n, peer(n)))
	}
	var program []string
	if in.Image != "" {
		program = []string{"etcd"}
	}
	own := peer(at.Number)
	return slices.Concat(program, []string{
		"--name", fmt.Sprint("m", at.Number), "--data-dir", dataDir, "--logger", "zap", "--log-level", "error",
		"--listen-client-urls", fmt.Sprintf("http://%s:%d", in.Bind, in.Port),
		"--advertise-client-urls", fmt.Sprintf("http://127.0.0.1:%d", at.Ports[at.Number][0]),
		"--listen-peer-urls", own, "--initial-advertise-peer-urls", own,
		"--initial-cluster", strings.Join(cluster, ","),
	}, more)
}

// ready waits until a member answers with the agreement of most members.
func ready(ctx context.Context, p launch.Starting) error {
	client, err := clientv3.New(address{endpoints: []string{p.Addr()}}.config(nil))
	if err != nil {
		return err
	}
	defer client.Close()
	return launch.Await(ctx, p, launch.LastLine, func(ctx context.Context) error { return ask(ctx, client) })
}
