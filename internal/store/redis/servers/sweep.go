package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// Swept is what a sweep removed.
type Swept struct {
	Containers  []string // ids
	Processes   []int    // pids of redis-servers
	Directories []string
	Keys        int
	Runs        []string // ids of the dead runs the keys belonged to
	Skipped     []string // what was not looked at, and why
}

// Sweep removes what a lockbench that was killed left behind: its containers,
// its redis-server processes and their directories on this machine, and, where
// the options name a server, its keys there. It leaves alone what belongs to a
// lockbench that still runs, or that cannot be told.
func Sweep(ctx context.Context, options Options) (Swept, error) {
	swept := sweepLocal(ctx)
	if d, err := openDocker(ctx); err != nil {
		swept.Skipped = append(swept.Skipped, "containers: "+oneLine(err))
	} else {
		swept.add(sweepContainers(ctx, d))
	}
	if options.Started() {
		return swept, ctx.Err()
	}
	s := &Server{slots: make(chan struct{}, dialsAtOnce)}
	err := s.open(ctx, Options{Address: options.Address, CAFile: options.CAFile, RunID: options.RunID}, Topology{})
	if err == nil {
		for _, node := range s.primaries() {
			swept.add(sweepKeys(ctx, node, 0))
		}
	}
	return swept, errors.Join(err, ctx.Err(), s.Close(ctx))
}

func (s *Swept) add(other Swept) {
	s.Containers = append(s.Containers, other.Containers...)
	s.Processes = append(s.Processes, other.Processes...)
	s.Directories = append(s.Directories, other.Directories...)
	s.Keys += other.Keys
	s.Runs = append(s.Runs, other.Runs...)
	s.Skipped = append(s.Skipped, other.Skipped...)
}

// log tells what was removed, if anything.
func (s Swept) log(options Options) {
	if n := len(s.Containers) + len(s.Processes) + len(s.Directories) + s.Keys; n > 0 {
		options.logf("removed what a killed lockbench left: %d containers, %d processes, %d directories, %d keys",
			len(s.Containers), len(s.Processes), len(s.Directories), s.Keys)
	}
	for _, skipped := range s.Skipped {
		options.logf("not swept: %s", skipped)
	}
}

// sweepLocal removes the processes and directories of dead owners.
func sweepLocal(ctx context.Context) Swept {
	var swept Swept
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPattern)) // the pattern is well-formed
	for _, dir := range dirs {
		if ctx.Err() != nil || !abandoned(dir) {
			continue
		}
		killed, err := killServersIn(dir)
		swept.Processes = append(swept.Processes, killed...)
		if err == nil {
			err = os.RemoveAll(dir)
		}
		if err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("%s: %v", dir, err))
			continue
		}
		swept.Directories = append(swept.Directories, dir)
	}
	return swept
}

// abandoned says that nobody who lives owns a directory.
func abandoned(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, ownerFile))
	var who owner
	if err == nil && json.Unmarshal(text, &who) == nil {
		return who.dead()
	}
	// Its maker died between two system calls, or is about to make the second.
	const stale = time.Minute
	stat, err := os.Stat(dir)
	return err == nil && time.Since(stat.ModTime()) > stale
}

// sweepContainers removes the containers of dead owners.
func sweepContainers(ctx context.Context, d *docker) Swept {
	defer d.close()
	var swept Swept
	list, err := d.client.ContainerList(ctx, client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", ownerLabel),
	})
	if err != nil {
		return Swept{Skipped: []string{"containers: " + oneLine(err)}}
	}
	for _, c := range list.Items {
		var who owner
		if json.Unmarshal([]byte(c.Labels[ownerLabel]), &who) != nil || !who.dead() {
			continue
		}
		_, err := d.client.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if errdefs.IsNotFound(err) || errdefs.IsConflict(err) && strings.Contains(err.Error(), "already in progress") {
			continue // somebody else sweeps too
		}
		if err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("container %.12s: %v", c.ID, err))
			continue
		}
		swept.Containers = append(swept.Containers, c.ID)
	}
	return swept
}
