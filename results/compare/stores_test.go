package compare

import (
	"slices"
	"testing"

	"github.com/lockbench/lockbench/results"
)

// A store that is another, or loses more in a crash, is told as a Redis is.
func TestOtherStoresDiffer(t *testing.T) {
	report := func(file string, server results.Redis) Report {
		return Report{File: file, Report: &results.Report{Stores: []results.Store{{Name: "postgres", Server: server}}}}
	}
	base := results.Redis{Source: "process", Version: "15.18", Durability: "fsync", Address: "127.0.0.1:1", Why: "it was there"}
	for what, change := range map[string]func(*results.Redis){
		"postgres version":    func(r *results.Redis) { r.Version = "17.2" },
		"postgres durability": func(r *results.Redis) { r.Durability = "memory" },
		"":                    func(r *results.Redis) { r.Address, r.Why = "127.0.0.1:2", "no address was given" },
	} {
		head := base
		change(&head)
		var told []string
		for _, d := range Differences(Side{Reports: []Report{report("base", base)}}, Side{Reports: []Report{report("head", head)}}) {
			told = append(told, d.What)
		}
		if want := slices.DeleteFunc([]string{what}, func(s string) bool { return s == "" }); !slices.Equal(told, want) {
			t.Errorf("it tells %q, want %q", told, want)
		}
	}
}
