//go:build !linux

package driver

import (
	"errors"
	"os"
	"time"
)

func monotonic() int64 { return 0 }

// process is a stub, because lockbench runs drivers only on Linux. There it can kill a driver with its children, and a
// program in any language can read the same clock.
type process struct {
	in, out *os.File
	log     tail
}

type tail struct{}

func (tail) String() string { return "" }

func start([]string) (*process, error) {
	return nil, errors.New("drivers need Linux, where all languages can use the same clock")
}

func (*process) kill()             {}
func (*process) end(time.Duration) {}
func (*process) cpu() *float64     { return nil }
func (*process) ending() string    { return "" }

func onlyOurs(string) error { return errors.New("drivers need Linux") }
