package zookeeper

import (
	"slices"
	"strings"
	"testing"
)

func TestAddresses(t *testing.T) {
	t.Setenv(authEnv, "")
	for address, want := range map[string]struct {
		servers    []string
		root, auth string
	}{
		"zk://host":                         {[]string{"host:2181"}, "", ""},
		"zk://host:1/":                      {[]string{"host:1"}, "", ""},
		"zk://a:1,b,c:3/locks/mine/":        {[]string{"a:1", "b:2181", "c:3"}, "/locks/mine", ""},
		"zk://user:p%40ss%2Fword@[::1]:1/x": {[]string{"[::1]:1"}, "/x", "user:p@ss/word"},
	} {
		node, err := parseAddress(address)
		if err != nil || !slices.Equal(node.Servers, want.servers) || node.Root != want.root || node.Auth != want.auth {
			t.Errorf("%s is %+v, %v", address, node, err)
		}
	}
	for _, address := range []string{
		"zk://", "zk:///x", "zk://:1", "zk://a:b", "zk://a:0", "zk://a:70000", "zk://a:1,,b:2", "zk://a:1?x=1",
		"zk://a:1/x//y", "zk://user@a:1", "zk://us%er:secret@a:1", "a:1", "redis://a:1", "zks://a:1",
	} {
		if node, err := parseAddress(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s is %+v, %v", address, node, err)
		}
	}
}

// A restart resets the server's counters: 7 packets are followed by 2. The sum must continue and be 10 at the end.
func TestCountersAfterARestart(t *testing.T) {
	var c counters
	for _, now := range []int64{5, 7, 7, 2, 3} {
		c.enter(status{connections: 3, received: now})
	}
	if r := c.enter(status{}); r.Clients != 0 || r.Commands[packets] != 10 { // it is down
		t.Errorf("it is %+v", r)
	}
}
