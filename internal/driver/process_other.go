//go:build !linux

package driver

import (
	"errors"
	"os"
	"time"
)

func monotonic() int64 { return 0 }

// process cannot be started on this system: how to kill it with its children, and whether its clock is lockbench's,
// is only known for Linux.
type process struct {
	in, out *os.File
	log     tail
}

type tail struct{}

func (tail) String() string { return "" }

func start([]string) (*process, error) {
	return nil, errors.New("drivers need Linux, where all languages have the same clock")
}

func (*process) kill()             {}
func (*process) end(time.Duration) {}
func (*process) cpu() *float64     { return nil }
func (*process) ending() string    { return "" }

func onlyOurs(string) error { return errors.New("drivers need Linux") }
