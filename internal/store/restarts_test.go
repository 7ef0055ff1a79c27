package store_test

import (
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// What a server has counted stays counted when it begins anew, and what it holds does not.
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

// A figure that one of several servers does not report is missing from their sum.
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
