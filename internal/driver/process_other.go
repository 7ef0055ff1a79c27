//go:build !linux

package driver

import (
	"errors"
	"os"
	"time"
)

func monotonic() int64 { return 0 }

// process cannot be started on this system. Only on Linux does lockbench know how to kill a driver with its children,
// and that all languages use the clock that lockbench uses.
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
