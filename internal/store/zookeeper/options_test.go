package zookeeper

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
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
		"zk://", "zk:///x", "zk://:1", "zk://a:b", "zk://a:0", "zk://a:70000", "zk://a:1,,b:2", "zk://a:1?x=1", "zk://a:1/x//y", "zk://user@a:1",
		"zk://us%er:secret@a:1", "a:1", "redis://a:1", "zks://a:1",
	} {
		if node, err := parseAddress(address); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s is %+v, %v", address, node, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, o := range []store.Options{{}, {Address: "auto"}, {Address: "process", Topology: "zookeeper:3", Pin: true}, {Address: "zk://a", Topology: "single"}} {
		if err := (Store{}).Validate(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	err := Store{}.Validate(store.Options{Address: "nonsense", Topology: "cluster:3", CAFile: "x.pem", Pin: true, Durability: "x"})
	for _, flag := range []string{"zk://", "--topology", "--ca-file", "--pin", "--durability"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%v does not name %s", err, flag)
		}
	}
	for _, topology := range []string{"zookeeper:2", "zookeeper:0", "zookeeper:9", "zookeeper:x", "nodes:3", "etcd:3"} {
		if err := (Store{}).Validate(store.Options{Topology: topology}); err == nil {
			t.Errorf("%s was taken", topology)
		}
	}
}

func TestLayout(t *testing.T) {
	ours := strategies.Info{Name: "ours", Store: "zookeeper", Nodes: 1}
	redis, quorum, local := ours, ours, ours
	redis.Store, quorum.Nodes, local.Nodes, local.Store = "", 3, 0, ""
	l := Store{}.Layout(store.Options{Topology: "zookeeper:3"})
	for _, c := range []struct {
		info strategies.Info
		fit  bool
	}{{ours, true}, {redis, false}, {quorum, false}, {local, true}} {
		if why := l.Unfit(c.info); (why == "") != c.fit {
			t.Errorf("%+v: %q", c.info, why)
		}
	}
	if l.Primaries() != 1 {
		t.Error("an instance connects to one member")
	}
	for _, c := range []struct {
		fault    string
		options  store.Options
		possible bool
	}{
		{"holder-crash", store.Options{Address: "zk://a"}, true},
		{"kill", store.Options{}, true},
		{"kill:data=keep", store.Options{}, true},
		{"kill:node=1", store.Options{}, false},
		{"kill", store.Options{Topology: "zookeeper:3"}, false},
		{"kill:data=keep,node=2", store.Options{Topology: "zookeeper:3"}, true},
		{"kill:data=keep", store.Options{Address: "zk://a", AllowFaults: true}, false},
		{"pause", store.Options{}, true},
		{"node-down", store.Options{}, false},
		{"node-down:n=2,node=1", store.Options{Topology: "zookeeper:3"}, true},
		{"node-hang:n=3", store.Options{Topology: "zookeeper:3"}, false},
		{"node-restart-empty", store.Options{Topology: "zookeeper:3"}, false},
		{"failover", store.Options{Topology: "zookeeper:3"}, false},
		{"script-flush", store.Options{}, false},
		{"latency", store.Options{Address: "zk://a"}, true},
	} {
		f := fault(t, c.fault)
		wrong := Store{}.Layout(c.options).Impossible([]workloads.Fault{f})
		if (len(wrong) == 0) != c.possible || len(wrong) > 0 && !strings.Contains(wrong[0].Error(), "--fault "+f.Name) {
			t.Errorf("%s with %+v: %v", c.fault, c.options, wrong)
		}
	}
}

// What a server has counted stays counted when it begins anew.
func TestGrown(t *testing.T) {
	var g grown
	for _, now := range []int64{5, 7, 7, 2, 3} {
		g.enter(now)
	}
	if g.sum != 10 {
		t.Errorf("it is %d", g.sum)
	}
}
