package servers

import (
	"context"
	"errors"

	"github.com/lockbench/lockbench/internal/launch"
)

// Swept is what a sweep removed.
type Swept struct {
	launch.Swept
	Keys int
	Runs []string // ids of the dead runs the keys belonged to
}

// Sweep removes what a lockbench that was killed left behind: its containers,
// its server processes and their directories on this machine, and, where
// the options name a server, its keys there. It leaves alone what belongs to a
// lockbench that still runs, or that cannot be told.
func Sweep(ctx context.Context, options Options) (Swept, error) {
	swept := Swept{Swept: launch.Sweep(ctx)}
	if engine, err := launch.OpenEngine(ctx); err != nil {
		swept.Skipped = append(swept.Skipped, "containers: "+oneLine(err))
	} else {
		swept.Add(engine.Sweep(ctx))
	}
	if options.Started() {
		return swept, ctx.Err()
	}
	s := &Server{dials: make(chan struct{}, dialsAtOnce)}
	err := s.open(ctx, Options{Address: options.Address, CAFile: options.CAFile, RunID: options.RunID}, Topology{})
	if err == nil {
		for _, node := range s.primaries() {
			swept.add(sweepKeys(ctx, node, 0))
		}
	}
	return swept, errors.Join(err, ctx.Err(), s.Close(ctx))
}

func (s *Swept) add(other Swept) {
	s.Add(other.Swept)
	s.Keys += other.Keys
	s.Runs = append(s.Runs, other.Runs...)
}

// logSweep tells what was removed of this machine, if anything.
func (o Options) logSweep(swept launch.Swept) { Swept{Swept: swept}.log(o) }

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
