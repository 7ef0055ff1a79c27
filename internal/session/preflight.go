package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// Preflight implements lockbench.Preflight, which documents it.
func Preflight(ctx context.Context, plan Plan) ([]results.Symptom, results.Redis, error) {
	if err := plan.Validate(); err != nil {
		return nil, results.Redis{}, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	s, err := open(ctx, plan)
	if err != nil {
		var found preflight
		_ = found.add("reachable", func(*results.Symptom) error { return err })
		return found, results.Redis{Source: "address"}, err
	}
	found, err := s.preflight(ctx)
	server := s.report.Redis
	if len(s.report.Stores) > 0 && s.named(store.Redis) == nil {
		server = s.report.Stores[0].Server
	}
	closed := errors.Join(s.closeStores(context.WithoutCancel(ctx))...)
	return found, server, errors.Join(ctx.Err(), err, closed)
}

// preflight lists the findings of a preflight, one symptom per step.
type preflight []results.Symptom

// add runs a step and adds its symptom. If the step returns an error, add marks the symptom as Trouble and returns the
// error, which ends the preflight.
func (p *preflight) add(name string, find func(*results.Symptom) error) error {
	symptom := results.Symptom{Name: name, State: results.Well}
	err := find(&symptom)
	if err != nil {
		trouble(&symptom, err)
	}
	if len(symptom.Says) > 0 {
		*p = append(*p, symptom)
	}
	return err
}

// say adds a sentence to a symptom.
func say(symptom *results.Symptom, format string, args ...any) {
	symptom.Says = append(symptom.Says, untrusted.Printable(fmt.Sprintf(format, args...)))
}

// trouble marks a symptom as Trouble and adds the error. The first trouble replaces the sentences about checks that
// passed.
func trouble(symptom *results.Symptom, err error) {
	if symptom.State != results.Trouble {
		symptom.State, symptom.Says = results.Trouble, nil
	}
	say(symptom, "%s", strings.Join(strings.Fields(err.Error()), " "))
	if next := servers.NextStep(err.Error()); next != "" && !slices.Contains(symptom.Next, next) {
		symptom.Next = append(symptom.Next, next)
	}
}

// refusal returns an error with all troubles and their remedies; nil if there is no trouble.
func (p preflight) refusal() error {
	var lines, next []error
	for _, symptom := range p {
		if symptom.State != results.Trouble {
			continue
		}
		for _, text := range symptom.Says {
			lines = append(lines, errors.New(text))
		}
		for _, text := range symptom.Next {
			next = append(next, errors.New("next: "+text))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return limited{errors.Join(append(lines, next...)...)}
}

// warnings returns a remark for each preflight symptom in state Note, which does not stop the run.
func (p preflight) warnings() (all results.Remarks) {
	for _, symptom := range p {
		if symptom.State == results.Note {
			said := strings.Join(append(slices.Clone(symptom.Says), symptom.Next...), "; ")
			all = append(all, results.PreflightNote.Remark(symptom.Name, said))
		}
	}
	return all
}

// preflight tries each kind of operation that the run will need. It returns an error if the servers do not reply.
func (s *session) preflight(ctx context.Context) (found preflight, err error) {
	for _, step := range []struct {
		name string
		find func(context.Context, *results.Symptom) error
	}{
		{"reachable", s.reachable},
		{"server", s.software},
		{"limits", s.tight},
		{"rights", func(ctx context.Context, symptom *results.Symptom) error {
			return s.permitted(ctx, symptom, found.refusal() == nil)
		}},
		{"figures", s.figures},
	} {
		err := found.add(step.name, func(symptom *results.Symptom) error { return step.find(ctx, symptom) })
		if err != nil || ctx.Err() != nil {
			return found, err
		}
	}
	for _, p := range s.servers {
		if e, ok := p.server.(store.Examiner); ok && p.name == store.Redis {
			found = append(found, e.Symptoms(ctx)...)
		}
	}
	return found, nil
}

func (s *session) reachable(ctx context.Context, symptom *results.Symptom) error {
	for _, p := range s.servers {
		began := time.Now()
		if err := p.server.Ping(ctx); err != nil && p.server.Refused(err) == "" {
			return err
		}
		say(symptom, "%s replied within %v", p.name, time.Since(began).Round(10*time.Microsecond))
	}
	return nil
}

func (s *session) software(_ context.Context, symptom *results.Symptom) error {
	for _, p := range s.servers {
		say(symptom, "%s %s", p.name, p.server.Describe().Describe())
	}
	return nil
}

// limited is a store.ErrConfig whose message consists only of the wrapped errors, one per line.
type limited struct{ error }

func (l limited) Is(target error) bool { return target == store.ErrConfig }

// Unwrap returns the wrapped errors.
func (l limited) Unwrap() []error { return l.error.(interface{ Unwrap() []error }).Unwrap() }
