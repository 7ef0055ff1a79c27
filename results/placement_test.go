package results

import "testing"

func TestThePlacementSaysWhatIsShared(t *testing.T) {
	for _, test := range []struct {
		generator, redis []int
		source, network  string
		want             string
	}{
		{nil, []int{0}, "process", "loopback", ""},
		{[]int{0, 1}, []int{0, 1}, "process", "loopback", "generator on CPU 0-1, Redis on CPU 0-1: they share all"},
		{[]int{0, 1, 2}, []int{3}, "process", "loopback", "generator on CPU 0-2, Redis on CPU 3: apart"},
		{[]int{0, 1, 2, 3, 8}, []int{2, 3, 4}, "address", "loopback", "generator on CPU 0-3,8, Redis on CPU 2-4: they share 2-3"},
		{[]int{0}, []int{0, 1}, "process", "loopback", "generator on CPU 0, Redis on CPU 0-1: they share 0"},
		{[]int{0, 1}, nil, "address", "remote", "generator on CPU 0-1, Redis on another machine"},
		{[]int{0, 1}, nil, "container", "host", "generator on CPU 0-1, Redis on this machine, where on it is not known"},
		{[]int{0, 2}, nil, "none", "", "generator on CPU 0,2"},
	} {
		r := &Report{Environment: Environment{AllowedCPUs: test.generator}, Redis: Redis{Source: test.source, Network: test.network, AllowedCPUs: test.redis}}
		if got := placement(r); got != test.want {
			t.Errorf("%v and %v: %q, want %q", test.generator, test.redis, got, test.want)
		}
	}
}
