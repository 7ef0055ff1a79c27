package zookeeper

import "testing"

// ahead must sort negative sequence numbers after the largest positive number, and must ignore nodes of other recipes.
func TestAhead(t *testing.T) {
	for _, c := range []struct {
		name   string
		queue  []string
		before string
		there  bool
	}{
		{"_c_a-lock-0000000003", []string{"_c_a-lock-0000000003"}, "", true},
		{"_c_a-lock-3", []string{"_c_b-lock-1", "_c_a-lock-3", "_c_c-lock-2", "_c_d-lock-4"}, "_c_c-lock-2", true},
		{"_c_a-lock-0000000003", []string{"_c_b-lock-0000000001"}, "_c_b-lock-0000000001", false},
		{"_c_a-lock-0000000003", []string{"x", "config", "_c_a-lock-0000000003"}, "", true},
		{"a-lock--2147483648", []string{"a-lock--2147483648", "b-lock-2147483647"}, "b-lock-2147483647", true},
		{"_c_b-lock-2147483647", []string{"_c_a-lock--2147483648", "_c_b-lock-2147483647"}, "", true},
	} {
		if before, there := ahead(c.name, c.queue); before != c.before || there != c.there {
			t.Errorf("before %s in %q is %q, %v", c.name, c.queue, before, there)
		}
	}
}
