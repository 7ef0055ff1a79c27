package command_test

import (
	"errors"
	"os/exec"
	"strconv"
)

// exitCode is the exit code in what running a command returned.
func exitCode(err error) string {
	if err == nil {
		return "0"
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return strconv.Itoa(failed.ExitCode())
	}
	return err.Error()
}
