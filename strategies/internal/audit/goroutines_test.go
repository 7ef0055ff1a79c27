package audit

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
)

// labelled runs do, which can count the goroutines that it began and those that these
// began, whatever other tests do.
func labelled(t *testing.T, do func(ctx context.Context, goroutines func() int)) {
	t.Helper()
	label := t.Name()
	pprof.Do(t.Context(), pprof.Labels("test", label), func(ctx context.Context) {
		do(ctx, func() int {
			t.Helper()
			var text bytes.Buffer
			if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
				t.Fatal(err)
			}
			return count(text.String(), label)
		})
	})
}

// count sums the goroutines of a profile that have a label. Each stack is told once, with
// how many have it.
func count(profile, label string) (sum int) {
	for stack := range strings.SplitSeq(profile, "\n\n") {
		var n int
		if strings.Contains(stack, fmt.Sprintf(`"test":%q`, label)) {
			for line := range strings.Lines(stack) {
				if _, err := fmt.Sscanf(line, "%d @", &n); err == nil {
					sum += n
					break
				}
			}
		}
	}
	return sum
}
