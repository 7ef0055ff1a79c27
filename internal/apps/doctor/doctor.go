// Package doctor examines a server and this machine before a measurement. Each function finds one
// symptom.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// Validate returns all errors of the address that can be found without the server, joined.
func Validate(redis lockbench.StoreOptions) error {
	switch {
	case redis.Address == "":
		return errors.New("--redis: give the address of the server to look at")
	case (servers.Options{Address: redis.Address}).Started():
		return errors.New("--redis must be the address of a server: one that lockbench starts itself is well")
	}
	kind, err := kindAt(redis.Address)
	if err != nil {
		return err
	}
	return kind.Validate(store.Options{Address: redis.Address, Topology: redis.Topology, CAFile: redis.CAFile})
}

// Run examines the server at an address, and this machine, in a few seconds: whether a run would work
// there, and what would spoil its figures. It returns the document also with an error, which means
// that the server cannot be used, or that ctx ended.
func Run(ctx context.Context, redis lockbench.StoreOptions) (*Document, error) {
	d := &Document{Head: document.Begin(schema)}
	d.Environment, d.Redis = measure.Environment(), results.Redis{Source: "address"}
	err := examine(ctx, redis, d)
	d.Finished = time.Now()
	return d, errors.Join(ctx.Err(), err)
}

func examine(ctx context.Context, redis lockbench.StoreOptions, d *Document) error {
	id := store.NewRunID()
	if name, _ := store.At(redis.Address); name != store.Redis { // Redis reports more
		return examineAny(ctx, name, redis, d)
	}
	server, err := servers.Open(ctx, servers.Options{Address: redis.Address, Topology: redis.Topology, CAFile: redis.CAFile, RunID: id})
	if err != nil {
		d.Symptoms = append(d.Symptoms, unreached(err), machine(ctx))
		return err
	}
	d.Redis = server.Describe()
	e := examination{server, id}
	for _, look := range []func(context.Context) Symptom{
		e.reachable, e.software, e.topology, e.rights, e.limits, e.memory, e.info, e.clock, e.persistence,
	} {
		if ctx.Err() == nil {
			d.Symptoms = append(d.Symptoms, look(ctx))
		}
	}
	d.Symptoms = append(d.Symptoms, machine(ctx))
	return server.Close(context.WithoutCancel(ctx))
}

// examination is an examination of Redis.
type examination struct {
	server *servers.Server
	id     string // of the session
}

// unreached returns the symptom of a server that cannot be used.
func unreached(err error) Symptom {
	s := Symptom{Name: "reachable", State: Trouble, Says: []string{oneLine(err)}}
	if next := servers.NextStep(err.Error()); next != "" {
		s.Next = []string{next}
	}
	return s
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(untrusted.Printable(err.Error())), " ")
}

// symptom returns a symptom with one sentence.
func symptom(name string, state State, format string, args ...any) Symptom {
	return Symptom{Name: name, State: state, Says: []string{fmt.Sprintf(format, args...)}}
}
