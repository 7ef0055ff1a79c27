package redisson_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

func TestNamesStayInKeySlot(t *testing.T) {
	for _, test := range []struct{ key, prefixed, suffixed string }{
		{"key", "p:{key}", "{key}:s"},
		{"a:{b}:c", "p:a:{b}:c", "a:{b}:c:s"},
		{"odd{key", "p:odd{key", "odd{key:s"},
		{"odd}key", "p:{odd}key}", "{odd}key}:s"},
		{"", "p:{}", "{}:s"},
	} {
		if got := redisson.Prefixed("p", test.key); got != test.prefixed {
			t.Errorf("%q with a prefix is %q, want %q", test.key, got, test.prefixed)
		}
		if got := redisson.Suffixed(test.key, "s"); got != test.suffixed {
			t.Errorf("%q with a suffix is %q, want %q", test.key, got, test.suffixed)
		}
	}
}
