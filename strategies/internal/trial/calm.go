package trial

import "testing"

// Calm runs a play that a stalled machine can spoil. play returns what kept it from showing
// anything, such as a lock that ran out before anybody waited for it, or "". Calm runs it six
// times at most, with its times multiplied by 1, 4 and then 16. A fault that play finds fails
// the test at once.
func Calm(t testing.TB, play func(times int) (spoilt string)) {
	t.Helper()
	for _, times := range []int{1, 4, 16, 16, 16, 16} {
		spoilt := play(times)
		if spoilt == "" {
			return
		}
		t.Logf("spoilt, with times multiplied by %d: %s", times, spoilt)
	}
	t.Error("it was spoilt each time")
}
