package redistest

import (
	_ "embed" // the library's source
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// Clock sets how far the clock of a Redis is ahead of the machine's.
type Clock struct {
	t    testing.TB
	file *os.File
}

// StartSettable starts a Redis whose clock can be set. It skips the test if there is no C
// compiler, or if Redis is no process here.
func StartSettable(t testing.TB, args ...string) (*Server, *Clock) {
	t.Helper()
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("to set Redis's clock takes a C compiler: ", err)
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.Command(compiler, "-shared", "-fPIC", "-o", library, source, "-ldl")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Skipf("the library that sets Redis's clock cannot be made: %v: %s", err, output)
	}
	file, err := os.Create(filepath.Join(dir, "ahead"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	c := &Clock{t, file}
	c.Set(0)
	server := StartWith(t, []string{"LD_PRELOAD=" + library, "CLOCK_AHEAD=" + file.Name()}, args...)
	const step = time.Hour
	c.Set(step)
	now, err := server.Client(t).Time(t.Context()).Result()
	if off := time.Until(now) - step; err != nil || off.Abs() > step/2 {
		t.Skipf("Redis's clock cannot be set here: it is off by %v, %v", off, err)
	}
	c.Set(0)
	return server, c
}

// Set sets how far the clock is ahead from now on; negative is behind.
func (c *Clock) Set(ahead time.Duration) {
	c.t.Helper()
	ahead64 := uint64(ahead.Microseconds()) //nolint:gosec // the sign is kept
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, ahead64), 0); err != nil {
		c.t.Errorf("set Redis's clock: %v", err)
	}
}
