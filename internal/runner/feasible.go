package runner

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
)

// Feasible says why the plan cannot work on the servers that it asks for, as far as that is known
// without the servers; the error wraps store.ErrConfig. Run finds out what depends on the
// servers or on a running strategy.
func (p Plan) Feasible() error {
	if errors.Join(p.wrongStores()...) != nil {
		return nil // Validate reports it
	}
	files, err := measure.MaxOpenFiles()
	if err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	var problems []error
	why, fit := "", 0
	for _, v := range p.Strategies {
		kind, err := store.Lookup(p.storeOf(v))
		if err != nil {
			return err
		}
		layout := kind.Layout(p.Stores[cmp.Or(p.storeOf(v), store.Redis)])
		if w := unfit(v.Info(), p.points()[0].Workload, layout); w != "" {
			why = w
			continue
		}
		problems = append(problems, p.tooManyFiles(v, layout.Primaries(), files))
		fit++
	}
	if err := errors.Join(problems...); err != nil {
		return limited{err}
	}
	if fit == 0 && why != "" {
		return fmt.Errorf("%w: nothing that --strategy names can run here: %s", store.ErrConfig, why)
	}
	return nil
}
