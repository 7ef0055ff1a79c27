package workloads

import (
	"strings"
	"testing"
)

// Whoever adds an option and does not describe it is found here.
func TestEveryOptionIsDescribed(t *testing.T) {
	unusual := map[string]string{
		"clients": "7", "duration": "7s", "iterations": "7", "warmup": "7s", "instances": "7", "keys": "7",
		"key-dist": "zipf:0.99", "hold": "7ms",
		"think": "7ms", "rate": "7/s", "arrivals": "constant", "stage": "7s:7", "burst": "7ms", "ttl": "7s",
		"timeout": "7s", "work": "spin", "fence": "off", "counter": "apart",
		"coalesce": "true", "pool": "7",
	}
	// without which it means nothing
	besides := map[string]string{
		"key-dist": "keys=7", "arrivals": "rate=7/s", "fence": "work=counter",
		"counter": "work=counter",
	}
	for _, f := range Fields() {
		if f.Name == "seed" || f.Name == "fault" { // they have lines of their own
			continue
		}
		s := Default()
		for _, other := range Fields() {
			if name, value, _ := strings.Cut(besides[f.Name], "="); name == other.Name {
				give(t, &s, other, value)
			}
		}
		before := s.Describe()
		if unusual[f.Name] == "" {
			t.Fatalf("%s: name a value here that is not the usual one", f.Name)
		}
		give(t, &s, f, unusual[f.Name])
		if s.Describe() == before {
			t.Errorf("with %s %s it is described as without: %s", f.Name, unusual[f.Name], before)
		}
	}
}

func give(t *testing.T, s *Spec, f Field, text string) {
	t.Helper()
	values, err := f.values([]string{text})
	if err != nil {
		t.Fatal(err)
	}
	s.set(f, values...)
}
