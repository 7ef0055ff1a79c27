//go:build !unix

package servers

import (
	"errors"
	"os"
	"os/exec"
)

func detach(*exec.Cmd) {}

func pause(*os.Process) error  { return errors.ErrUnsupported }
func resume(*os.Process) error { return errors.ErrUnsupported }
