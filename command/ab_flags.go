package command

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// abFlags returns the files that the runs' flags name, and an error for flags that ab
// sets itself.
func abFlags(args []string) ([]file, error) {
	f := newFlags()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true // a build may have flags that this one has not
	set.Usage = func() {}
	f.register(set)
	if err := set.Parse(args); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return nil, fmt.Errorf("behind the --: %w", err)
	}
	var problems []error
	for _, name := range []string{"redis", "ca-file", "topology", "quiet", "output"} {
		if set.Changed(name) {
			problems = append(problems, fmt.Errorf("--%s belongs before the --", name))
		}
	}
	for _, name := range []string{"image", "pin", "dry-run"} {
		if set.Changed(name) {
			problems = append(problems, fmt.Errorf("--%s cannot be had with ab", name))
		}
	}
	// The runs inherit our variables, and read the files that these name.
	f.given.readEnvironment()
	if f.file != "" {
		_ = f.given.readWorkload(f.file, &f.workload) // the runs report its errors
	}
	return f.reads(), errors.Join(problems...)
}

// programs returns the files of builds.
func programs(builds []string) []file {
	var files []file
	for i, name := range builds {
		if path, err := binary(name); err == nil && i < 2 {
			files = append(files, reads([2]string{"BASE_BINARY", "HEAD_BINARY"}[i], path)...)
		}
	}
	return files
}

// binary finds a build as a shell would.
func binary(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s: not a program that can be run: %w", name, errors.Unwrap(err))
	}
	return path, nil
}

// firstWord is how long a build may take to print its version.
const firstWord = 10 * time.Second

// isLockbench returns an error unless a program's version output is lockbench's. Only a
// lockbench gets flags.
func isLockbench(ctx context.Context, name, path string) error {
	within, cancel := context.WithTimeout(ctx, firstWord)
	defer cancel()
	cmd := exec.CommandContext(within, path, "version")
	cmd.WaitDelay = time.Second // for child processes that keep the output open
	said, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		return fmt.Errorf("%s is no lockbench: %q did not end within %v", name, name+" version", firstWord)
	case err != nil:
		return fmt.Errorf("%s is no lockbench: %q ended with %w", name, name+" version", err)
	case !strings.HasPrefix(string(said), "lockbench "):
		return fmt.Errorf("%s is no lockbench: %q said %q", name, name+" version", shorten(string(said)))
	}
	return nil
}

// shorten returns at most 60 letters of a text's first line.
func shorten(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if letters := []rune(line); len(letters) > 60 {
		return string(letters[:60]) + "…"
	}
	return line
}
