package stores_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// TestValidate passes options to each store. Valid options must cause no error. The error for others must name each
// wrong flag and contain no password.
func TestValidate(t *testing.T) {
	t.Setenv("LOCKBENCH_ZK_AUTH", "")
	for name, options := range map[string][]store.Options{
		"etcd": {
			{},
			{Address: "auto"},
			{Address: "process", Topology: "etcd:3"},
			{Topology: "single"},
			{Address: "etcd://a:1,b:2,c:3"},
			{Address: "etcds://user:p%40ss@host:2379"},
		},
		"postgres": {
			{},
			{Address: "process"},
			{Address: "postgresql://h:5/x?sslmode=disable"},
			{Address: "process", Topology: "single", Durability: store.InMemory},
		},
		"zookeeper": {
			{},
			{Address: "auto"},
			{Address: "process", Topology: "zookeeper:3"},
			{Address: "zk://a", Topology: "single"},
		},
	} {
		for _, o := range options {
			if err := lookup(t, name).Validate(o); err != nil {
				t.Errorf("%s: %+v: %v", name, o, err)
			}
		}
	}
	for _, test := range []struct {
		name string
		o    store.Options
		want []string
	}{
		{"etcd", store.Options{Topology: "nodes:3"}, []string{"--topology"}},
		{"etcd", store.Options{Topology: "etcd:2"}, []string{"etcd:1 or etcd:3"}},
		{"etcd", store.Options{Address: "container"}, []string{"etcd only as a process"}},
		{"etcd", store.Options{Address: "etcd://user:secret@host"}, []string{"address of etcd"}},
		{"etcd", store.Options{Address: "http://host:2379"}, []string{"the address"}},
		{"etcd", store.Options{Address: "etcd://host:2379", CAFile: "x"}, []string{"--ca-file needs an etcds:"}},
		{"etcd", store.Options{Address: "etcds://host:2379", CAFile: "no-such-file"}, []string{"--ca-file: open"}},
		{"etcd", store.Options{Durability: "some"}, []string{"--durability"}},
		{"etcd", store.Options{Address: "etcd://user:sec%zzret@host:1"}, []string{"percent-encode spe"}},
		{"postgres", store.Options{Topology: "cluster:3"}, []string{"--topology"}},
		{"postgres", store.Options{Durability: "some"}, []string{"--durability"}},
		{"postgres", store.Options{CAFile: "x"}, []string{"--ca-file"}},
		{"postgres", store.Options{Address: "postgres://h/x", CAFile: "/nowhere"}, []string{"--ca-file"}},
		{
			"postgres",
			store.Options{Address: "postgres://h/x", Durability: store.InMemory},
			[]string{"--durability"},
		},
		{
			"zookeeper",
			store.Options{
				Address: "nonsense", Topology: "cluster:3", CAFile: "x",
				Durability: "x",
			},
			[]string{"zk://", "--topology", "--ca-file", "--durability"},
		},
		{"zookeeper", store.Options{Topology: "zookeeper:2"}, []string{"--topology"}},
		{"zookeeper", store.Options{Topology: "zookeeper:0"}, []string{"--topology"}},
		{"zookeeper", store.Options{Topology: "zookeeper:9"}, []string{"--topology"}},
		{"zookeeper", store.Options{Topology: "etcd:3"}, []string{"--topology"}},
	} {
		err := lookup(t, test.name).Validate(test.o)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %+v: %v, want %q", test.name, test.o, err, want)
			}
		}
	}
}

// TestImpossibleFaults passes each store faults that it supports and faults that it does not, for example because it
// has too few members. Only the latter may cause an error, which must contain the text in why.
func TestImpossibleFaults(t *testing.T) {
	for _, test := range []struct{ name, topology, address, fault, why string }{
		{"etcd", "", "", "kill:data=lose", ""},
		{"etcd", "", "", "latency", ""},
		{"etcd", "", "", "node-down", "--topology etcd:3"},
		{"etcd", "", "", "failover", "--fault failover is a fault of Redis"},
		{"etcd", "", "", "script-flush", "--fault script-flush is a fault of Redis"},
		{"etcd", "", "", "crash-between", "is a fault of Redis, not of etcd"},
		{"etcd", "etcd:3", "", "kill:data=lose", "data=keep"},
		{"etcd", "etcd:3", "", "kill:data=keep,node=3", "hits member 3"},
		{"etcd", "etcd:3", "", "node-down:n=2,node=2", "hits member 3"},
		{"etcd", "", "etcd://127.0.0.1:1", "kill", "starts itself"},
		{"etcd", "", "etcd://127.0.0.1:1", "holder-crash", ""},
		{"postgres", "", "", "kill", ""},
		{"postgres", "", "", "failover", "--fault failover"},
		{"postgres", "", "", "node-down", "--fault node-down"},
		{"postgres", "", "", "partition", "--fault partition"},
		{"postgres", "", "", "crash-between", "--fault crash-between"},
		{"postgres", "", "postgres://h/x", "kill", "starts itself"},
		{"postgres", "", "postgres://h/x", "holder-crash", ""},
		{"zookeeper", "", "zk://a", "latency", ""},
		{"zookeeper", "", "zk://a", "kill:data=keep", "--fault kill"},
		{"zookeeper", "", "", "crash-between", "is a fault of Redis, not of ZooKeeper"},
		{"zookeeper", "", "", "kill:node=1", "hits member 1"},
		{"zookeeper", "", "", "node-down", "--topology zookeeper:3"},
		{"zookeeper", "zookeeper:3", "", "kill", "data=keep"},
		{"zookeeper", "zookeeper:3", "", "kill:data=keep,node=2", ""},
		{"zookeeper", "zookeeper:3", "", "node-hang:n=2", ""},
		{"zookeeper", "zookeeper:3", "", "node-hang:n=3", "hits member 3"},
	} {
		f, err := workloads.ParseFault(test.fault)
		if err != nil {
			t.Fatal(err)
		}
		layout := lookup(t, test.name).Layout(store.Options{Topology: test.topology, Address: test.address})
		wrong := layout.Impossible([]workloads.Fault{f})
		switch {
		case test.why == "" && len(wrong) > 0:
			t.Errorf("%s on %s%s%s: %v", test.fault, test.name, test.topology, test.address, wrong)
		case test.why != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].Error(), test.why)):
			t.Errorf("%s on %s%s%s: %v, want %q", test.fault, test.name, test.topology, test.address, wrong, test.why)
		}
	}
}

// Unfit must accept in-process locks and the single-node locks of its own store, and must reject all others.
func TestUnfit(t *testing.T) {
	for _, name := range []string{"etcd", "postgres", "zookeeper"} {
		layout := lookup(t, name).Layout(store.Options{})
		for _, test := range []struct {
			info strategies.Info
			fit  bool
		}{
			{strategies.Info{Store: name, Nodes: 1}, true},
			{strategies.Info{}, true},
			{strategies.Info{Nodes: 1}, false},
			{strategies.Info{Store: name, Nodes: 3}, false},
		} {
			if why := layout.Unfit(test.info); (why == "") != test.fit {
				t.Errorf("%s: %+v: %q", name, test.info, why)
			}
		}
	}
}
