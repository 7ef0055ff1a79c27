package store_test

import (
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// TestRestartCounters enters readings from before and after a restart, which resets the server's counters. The sums
// must continue from their last values. Current values, such as the memory, must be those of the new process alone.
func TestRestartCounters(t *testing.T) {
	var kept store.RestartCounters
	if _, known := kept.Read(); known {
		t.Error("nothing was read yet")
	}
	reading := func(calls int64, cpu float64) results.Reading {
		return results.Reading{Commands: map[string]int64{"get": calls}, CPU: &cpu, Memory: 100, Clients: 2}
	}
	kept.Enter("first", reading(3, 1))
	kept.Enter("first", reading(5, 2))
	kept.Enter("second", reading(1, 0.5))
	got, known := kept.Read()
	if !known || got.Commands["get"] != 6 || *got.CPU != 2.5 || got.Memory != 100 || got.Clients != 2 ||
		kept.Process() != "second" {
		t.Errorf("over a restart it is %+v of %s", got, kept.Process())
	}
	kept.Miss()
	if got, _ = kept.Read(); got.Commands["get"] != 6 || got.Memory != 0 || got.Clients != 0 {
		t.Errorf("of a server that is down it is %+v", got)
	}
}

// TestRestartsAndPromotions enters the process, role and replication history of consecutive readings. Each restart of a
// server that is not a replica must be counted, and each promotion.
func TestRestartsAndPromotions(t *testing.T) {
	type reading struct{ process, role, history string }
	for _, test := range []struct {
		name               string
		readings           []reading
		restarts, promoted int64
	}{
		{"a primary", []reading{{"a", "master", ""}, {"a", "master", ""}}, 0, 0},
		{"a restart", []reading{{"a", "master", ""}, {"b", "master", ""}, {"c", "master", ""}}, 2, 0},
		{"the restart of a replica", []reading{{"a", "slave", ""}, {"b", "slave", ""}}, 0, 0},
		{"a promotion", []reading{{"a", "slave", ""}, {"a", "master", "h"}, {"a", "master", "h"}}, 0, 1},
		{"a primary that was a replica between two readings", []reading{{"a", "master", ""}, {"a", "master", "h"}}, 0, 1},
		{"a promotion of long ago", []reading{{"a", "master", "h"}, {"a", "master", "h"}, {"a", "master", ""}}, 0, 0},
		{"another server answers", []reading{{"a", "master", "h"}, {"b", "master", "i"}}, 1, 0},
		{"a server that does not say", []reading{{"a", "", ""}, {"a", "", ""}}, 0, 0},
	} {
		var kept store.RestartCounters
		for _, r := range test.readings {
			kept.Enter(r.process, results.Reading{Role: r.role, History: r.history})
		}
		if got, _ := kept.Read(); got.Restarts != test.restarts || got.RoleChanges != test.promoted {
			t.Errorf("%s: %d restarts and %d changes, want %d and %d", test.name, got.Restarts, got.RoleChanges,
				test.restarts, test.promoted)
		}
	}
}

// TestSum adds the readings of several servers. If one server does not report a figure, the sum must not contain it.
func TestSum(t *testing.T) {
	one, cpu := int64(1), 2.0
	nodes := []results.NodeReading{
		{Reading: results.Reading{BytesIn: &one, CPU: &cpu}},
		{Reading: results.Reading{CPU: &cpu}},
	}
	if sum := store.Sum(nodes); sum.BytesIn != nil || *sum.CPU != 4 {
		t.Errorf("the sum is %+v", sum)
	}
	if sum := store.Sum(nodes[:1]); *sum.BytesIn != 1 {
		t.Errorf("the sum of one is %+v", sum)
	}
}
