package html

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
)

func TestLockKeepsItsStyle(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		names []string
		want  map[string]int
	}{
		{[]string{"handoff", "spin"}, map[string]int{"handoff": 2, "spin": 0}},
		{[]string{"noop", "pubsub", "handoff"}, map[string]int{"noop": 0, "pubsub": 1, "handoff": 2}},
		{[]string{"spin:backoff=fixed", "spin"}, map[string]int{"spin": 0, "spin:backoff=fixed": 1}},
		{[]string{"exec:redis-py", "spin:backoff=fixed"}, map[string]int{"exec:redis-py": 1, "spin:backoff=fixed": 0}},
	} {
		if got := styles(test.names); !maps.Equal(got, test.want) {
			t.Errorf("%v have the styles %v, want %v", test.names, got, test.want)
		}
	}
}

// The page must show all thresholds, those that passed and those that were crossed.
func TestPageShowsThresholds(t *testing.T) {
	t.Parallel()
	r := synthetic([]string{"spin"}, []int{100}, 1)
	var without, with bytes.Buffer
	if err := Write(&without, []results.File{{Name: "a", Report: r}}); err != nil {
		t.Fatal(err)
	}
	r.Thresholds = []results.Judgement{
		{Threshold: "starved==0", Strategy: "spin", Passed: true}, {Threshold: "overlaps==0", Strategy: "spin"},
	}
	if err := Write(&with, []results.File{{Name: "a", Report: r}}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"<h2>Thresholds</h2>", "✓ passed</b><div><p>spin: starved==0", "✗ crossed</b><div><p>spin: overlaps==0",
	} {
		if !strings.Contains(with.String(), part) || strings.Contains(without.String(), part) {
			t.Errorf("the page with thresholds alone must have %q", part)
		}
	}
}
