package servers

import (
	"errors"
	"testing"
)

func TestParseTopology(t *testing.T) {
	for text, want := range map[string]Topology{
		"":           {},
		"single":     {Kind: Single},
		"nodes":      {Kind: Independent},
		"nodes:5":    {Independent, 5},
		"replicas:2": {Replicated, 2},
		"cluster:3":  {Clustered, 3},
	} {
		got, err := ParseTopology(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"ring", "single:1", "nodes:", "nodes:0", "nodes:17", "nodes:x", "replicas:-1", "cluster:2", "cluster:3:1", "Cluster:3", " "} {
		if got, err := ParseTopology(text); err == nil {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
	if _, err := Open(t.Context(), Options{Address: "process", Topology: "ring"}); !errors.Is(err, ErrConfig) {
		t.Errorf("a ring: %v, want ErrConfig", err)
	}
}

func TestUsualTopology(t *testing.T) {
	for text, want := range map[string]struct {
		topology string
		servers  int
	}{
		"": {"single", 1}, "nodes": {"nodes:5", 5}, "replicas": {"replicas:2", 3}, "cluster": {"cluster:3", 3}, "nodes:2": {"nodes:2", 2},
	} {
		parsed, err := ParseTopology(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed.usual(); got.String() != want.topology || got.Servers() != want.servers {
			t.Errorf("%q usually is %v of %d servers, want %s of %d", text, got, got.Servers(), want.topology, want.servers)
		}
	}
}
