//go:build !unix

package launch

import (
	"errors"
	"os"
	"os/exec"
)

func detach(*exec.Cmd, string) error { return nil }

func handOver(string, string) error { return nil }

func pause(*os.Process) error  { return errors.ErrUnsupported }
func resume(*os.Process) error { return errors.ErrUnsupported }
