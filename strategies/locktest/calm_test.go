package locktest

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// A fault that is seen only while the machine stands still is neither held against the
// lock nor forgotten.
func TestCalmly(t *testing.T) {
	const ttl = time.Second
	for _, test := range []struct {
		what    string
		still   time.Duration // of each attempt
		faulty  int           // attempts that find a fault
		want    Outcome
		because string
	}{
		{"a fault", ttl / 10, 1, Broken, ""},
		{"a fault while it stood still", ttl, 1, Passed, ""},
		{"faults, and it stood still each time", 32 * ttl, 9, NotJudged, "stood still"},
	} {
		t.Run(test.what, func(t *testing.T) {
			attempt := 0
			verdict := Check{Name: "calm", run: func(s *stage) {
				s.standstill = func(do func()) time.Duration { do(); return test.still }
				s.calmly(ttl, func(time.Duration) string {
					if attempt++; attempt <= test.faulty {
						return "a fault"
					}
					return ""
				})
			}}.Judge(t.Context(), Fixture{}, strategies.Info{})
			if verdict.Outcome != test.want || !strings.Contains(verdict.Because, test.because) {
				t.Errorf("%+v, want %v", verdict, test.want)
			}
		})
	}
}
