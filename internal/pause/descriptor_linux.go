package pause

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// descriptor is a timerfd (timerfd_create(2)) in the runtime's poller, with a resolution of nanoseconds. Only one
// goroutine at a time may sleep on it.
type descriptor struct {
	file *os.File
	fd   uintptr
}

const clockMonotonic = 1

// open returns a new descriptor; nil if the system cannot open one.
func open() *descriptor {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil
	}
	return &descriptor{file: os.NewFile(fd, "timerfd"), fd: fd}
}

func (d *descriptor) close() { _ = d.file.Close() }

// sleep blocks until the given time and returns true. If that time has already passed, it returns false at once.
//
// Usually the timer descriptor wakes the goroutine. The read deadline is a second way to wake it, because on a busy
// machine the runtime checks its own timers more often than descriptors.
func (d *descriptor) sleep(until time.Time) bool {
	left := time.Until(until)
	if left <= 0 {
		return false
	}
	var expirations [8]byte
	for ; left > 0; left = time.Until(until) {
		setting := struct{ interval, value syscall.Timespec }{value: syscall.NsecToTimespec(int64(left))}
		if _, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, d.fd, 0, uintptr(unsafe.Pointer(&setting)), 0,
			0, 0); errno != 0 {
			time.Sleep(left)
			return true
		}
		if err := d.file.SetReadDeadline(until); err != nil {
			time.Sleep(left)
			return true
		}
		_, _ = d.file.Read(expirations[:]) // returns when the timer expires or the deadline passes
	}
	return true
}
