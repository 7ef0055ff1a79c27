package untrusted

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 64 << 20

// ReadFile reads a regular file of at most MaxFile bytes. It refuses everything else at once: a FIFO would
// have it wait, and a device may have no end.
func ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a FIFO waits for its writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	about, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case about.IsDir():
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("it is a directory")}
	case !about.Mode().IsRegular():
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("it is no regular file")}
	}
	content, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxFile {
		return nil, &os.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is larger than %d MiB", MaxFile>>20)}
	}
	return content, nil
}
