package command

import (
	"errors"
	"fmt"
	"os/exec"

	"github.com/spf13/pflag"
)

// abFlags names those flags for the runs that ab gives them itself.
func abFlags(args []string) error {
	f := newFlags()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true // a build may have flags that this one has not
	set.Usage = func() {}
	f.register(set)
	if err := set.Parse(args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return fmt.Errorf("behind the --: %w", err)
	}
	var faults []error
	for _, name := range []string{"redis", "ca-file", "topology", "quiet", "output"} {
		if set.Changed(name) {
			faults = append(faults, fmt.Errorf("--%s belongs before the --", name))
		}
	}
	for _, name := range []string{"image", "pin", "dry-run"} {
		if set.Changed(name) {
			faults = append(faults, fmt.Errorf("--%s cannot be had with ab", name))
		}
	}
	return errors.Join(faults...)
}

// binary finds a build as a shell would.
func binary(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s: not a program that can be run: %w", name, errors.Unwrap(err))
	}
	return path, nil
}
