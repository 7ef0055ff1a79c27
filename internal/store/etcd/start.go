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
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
)

// program returns the path of this machine's etcd.
func program() (string, error) {
	name := cmp.Or(os.Getenv("LOCKBENCH_ETCD_SERVER"), "etcd")
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no etcd to start: apt-get install etcd-server, or give an address with etcd://host:port (%w)", err)
	}
	return filepath.Abs(path)
}

// image says how to get the image of the containers.
func image(o store.Options) launch.Image {
	const variable = "LOCKBENCH_ETCD_IMAGE"
	return launch.Image{
		Wanted: cmp.Or(o.Image, os.Getenv(variable)), Variable: variable, Default: "quay.io/coreos/etcd:v3.6.5",
	}
}

// losing returns the arguments for a durability.
func losing(d store.Durability) []string {
	if d != store.InMemory {
		return nil
	}
	return []string{"--unsafe-no-fsync"}
}

// old matches versions without --unsafe-no-fsync.
var old = regexp.MustCompile(`etcd Version: 3\.[0-4]\.`)

// loses returns an error if this machine's etcd does not know the arguments of losing.
func loses(ctx context.Context, path string, d store.Durability) error {
	if d != store.InMemory {
		return nil
	}
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return fmt.Errorf("ask %s for its version: %w", path, err)
	}
	if old.Match(version) {
		return fmt.Errorf("%w: --durability memory needs etcd 3.5 or later, which can go on without waiting for the disk; "+
			"%s is an older one, and LOCKBENCH_ETCD_SERVER may name another", store.ErrConfig, path)
	}
	return nil
}

// start starts n members at the same time: none is ready before most of them run.
func (s *Server) start(ctx context.Context, n int, o store.Options) error {
	way, err := launch.Ways{
		Asked: o.Address, Image: image(o), Logf: o.Logf,
		InContainers: func(ctx context.Context, engine launch.Engine, image string) (string, error) {
			network := ""
			if n > 1 { // the members use this machine's loopback interface
				network = "host"
			}
			err := s.startAll(ctx, n, func(ctx context.Context, m membership) (launch.Started, error) {
				return launch.InContainer(ctx, engine, launch.Container{
					Image: image, RunID: s.runID, Network: network, Logf: o.Logf, Inside: inside,
					Pick: func() (int, error) { return m.port, nil }, Beside: m.beside,
					Command: func(bind string, port int, _ bool) []string {
						return append([]string{"etcd"}, m.args(fmt.Sprintf("http://%s:%d", bind, port), losing(o.Durability))...)
					},
					Ready: func(ctx context.Context, c launch.Contained) error { return ready(ctx, c) },
				}, "etcd")
			})
			if err != nil {
				return "", err
			}
			return s.members[0].own.Network(), nil
		},
		AsProcesses: func(ctx context.Context) error {
			path, err := program()
			if err != nil {
				return err
			}
			if err := loses(ctx, path, o.Durability); err != nil {
				return err
			}
			return s.startAll(ctx, n, func(ctx context.Context, m membership) (launch.Started, error) {
				return launch.Start(ctx, launch.Program{
					Name: "etcd", Path: path,
					Args: func(p *launch.Process) []string { return m.args("http://"+p.Addr(), losing(o.Durability)) },
					Empty: func(_ context.Context, p *launch.Process) error {
						return os.RemoveAll(filepath.Join(p.Dir(), dataDir))
					},
					Beside: m.beside,
					Ready:  func(ctx context.Context, p *launch.Process) error { return ready(ctx, p) },
				}, func() (int, error) { return m.port, nil }, s.runID)
			})
		},
	}.Start(ctx)
	switch {
	case errors.Is(err, store.ErrConfig):
		return err
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnreachable, err)
	}
	s.description.Source, s.description.Image, s.description.Network, s.description.Why = way.Source, way.Image, way.Network, way.Why
	s.description.Durability = string(store.Synced)
	if o.Durability == store.InMemory {
		s.description.Durability = string(store.InMemory)
	}
	return nil
}

// inside is the port in the container behind a published one.
const inside = 2379

// membership holds what a member must know of the others.
type membership struct {
	number int
	port   int
	peers  []int // the members' ports for each other
	token  string
}

// beside returns the member's port for the others.
func (m membership) beside(int) []int { return m.peers[m.number : m.number+1] }

func (m membership) args(listen string, more []string) []string {
	cluster := make([]string, len(m.peers)) // NAME=URL of each
	for i, port := range m.peers {
		cluster[i] = fmt.Sprintf("m%d=http://127.0.0.1:%d", i, port)
	}
	_, peer, _ := strings.Cut(cluster[m.number], "=")
	return append([]string{
		"--name", fmt.Sprint("m", m.number), "--data-dir", dataDir, "--logger", "zap", "--log-level", "error",
		"--listen-client-urls", listen, "--advertise-client-urls", fmt.Sprintf("http://127.0.0.1:%d", m.port),
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", strings.Join(cluster, ","), "--initial-cluster-token", m.token,
	}, more...)
}

// startAll starts members on free ports.
func (s *Server) startAll(ctx context.Context, n int, start func(context.Context, membership) (launch.Started, error)) error {
	all, err := ensemble.Start(ctx, n, 2, taken, func(ctx context.Context, number int, ports [][]int) (launch.Started, error) {
		m := membership{number: number, port: ports[number][0], token: "lockbench-" + s.runID}
		for _, of := range ports {
			m.peers = append(m.peers, of[1])
		}
		return start(ctx, m)
	})
	for _, one := range all {
		s.members = append(s.members, &member{endpoint: one.Addr(), own: one})
	}
	return err
}

func taken(err error) bool { return strings.Contains(err.Error(), "address already in use") }

// dataDir is in a process's directory.
const dataDir = "data"

// ready waits until a member answers with the agreement of most members.
func ready(ctx context.Context, p launch.Starting) error {
	client, err := dial(clientConfig(address{endpoints: []string{p.Addr()}}), nil)
	if err != nil {
		return err
	}
	defer client.Close()
	return launch.Await(ctx, p, launch.LastLine, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return ask(ctx, client)
	})
}
