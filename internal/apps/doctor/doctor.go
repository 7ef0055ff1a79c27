// Package doctor looks at a server and at this machine before anything is measured: one
// file a part, each a function that finds a symptom.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/servers"
	"github.com/lockbench/lockbench/results"
)

// Options say what to look at.
type Options struct {
	Redis servers.Options
	Files int64 // that this process may open; 0 is any number
}

// Run looks. The document comes also with an error, which is that of not reaching the
// server.
func Run(ctx context.Context, options Options) (*results.Doctor, error) {
	d := &results.Doctor{Schema: results.DoctorSchema, Started: time.Now(), Environment: measure.Environment()}
	d.Redis.Source = "address"
	err := examine(ctx, options, d)
	d.Finished = time.Now()
	return d, err
}

func examine(ctx context.Context, options Options, d *results.Doctor) error {
	server, err := servers.Open(ctx, options.Redis)
	if err != nil {
		d.Symptoms = append(d.Symptoms, unreached(err), machine(ctx))
		return err
	}
	d.Redis = server.Describe()
	e := examination{server: server, options: options}
	for _, look := range []func(context.Context) results.Symptom{
		e.reachable, e.software, e.topology, e.rights, e.limits, e.memory, e.info, e.clock, e.persistence,
	} {
		if ctx.Err() == nil {
			d.Symptoms = append(d.Symptoms, look(ctx))
		}
	}
	d.Symptoms = append(d.Symptoms, machine(ctx))
	return errors.Join(ctx.Err(), server.Close(context.WithoutCancel(ctx)))
}

// examination is one under way.
type examination struct {
	server  *servers.Server
	options Options
}

// unreached is what to say of a server that cannot be used.
func unreached(err error) results.Symptom {
	s := results.Symptom{Name: "reachable", State: results.Trouble, Says: []string{oneLine(err)}}
	if next := servers.NextStep(err.Error()); next != "" {
		s.Next = []string{next}
	}
	return s
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// symptom makes one of one sentence.
func symptom(name string, state results.State, format string, args ...any) results.Symptom {
	return results.Symptom{Name: name, State: state, Says: []string{fmt.Sprintf(format, args...)}}
}
