package servers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// programs are the servers that lockbench looks for, in this order. Debian's Valkey package has no
// redis-server.
var programs = []string{"redis-server", "valkey-server"}

// known are the programs that may be the server of a run.
var known = []string{"redis-server", "valkey-server", "keydb-server", "dragonfly"}

// lookProgram returns the server to start: wanted, which is a program on PATH or a path, else the
// one in LOCKBENCH_REDIS_SERVER, else the first of programs. The error is exec.ErrNotFound if
// there is none.
func lookProgram(wanted string) (string, error) {
	const variable = "LOCKBENCH_REDIS_SERVER"
	who := "--redis process:" + wanted
	if wanted == "" {
		wanted, who = os.Getenv(variable), variable
	}
	if wanted != "" {
		found, err := exec.LookPath(wanted)
		if err != nil {
			return "", fmt.Errorf("%s: %w", who, errors.Join(exec.ErrNotFound, err))
		}
		return found, nil
	}
	for _, program := range programs {
		if found, err := exec.LookPath(program); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("find %s: %w", strings.Join(programs, " or "), exec.ErrNotFound)
}

// programIn returns the program to start in an image, which the image's name tells.
func programIn(image string) string {
	repository, _, _ := strings.Cut(path.Base(image), ":")
	for _, name := range []string{"valkey", "keydb"} {
		if slices.Contains(strings.FieldsFunc(path.Dir(image)+"/"+repository, func(r rune) bool { return r == '/' || r == '-' }), name) {
			return name + "-server"
		}
	}
	return programs[0]
}
