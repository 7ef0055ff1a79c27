package command

import (
	"errors"

	"github.com/spf13/pflag"
)

// faults joins those of a command's flags with others that were found.
func (a *app) faults(set *pflag.FlagSet, others ...error) error {
	given := source{set: set}
	faults := append(unknownFlags(set, a.args), given.faults()...)
	for _, other := range others {
		faults = append(faults, each(other)...)
	}
	return errors.Join(faults...)
}
