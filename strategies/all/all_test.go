package all_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// TestEveryStrategyDescribesItself checks that each registered strategy has a one-line summary, a Doc, help for each
// option, and valid limits with reasons. A strategy that does not claim exclusion must also have a caveat.
func TestEveryStrategyDescribesItself(t *testing.T) {
	for _, s := range strategies.All() {
		info := s.Info
		if info.Summary == "" || strings.Contains(info.Summary, "\n") {
			t.Errorf("%s: its summary is %q, want one line", info.Name, info.Summary)
		}
		if info.Doc == "" {
			t.Errorf("%s: it has no Doc", info.Name)
		}
		if info.Capacity > 0 && !info.Claims.Exclusion && info.Caveat == "" {
			t.Errorf("%s poses as a lock, does not claim exclusion, and does not say why", info.Name)
		}
		for _, limit := range info.Limits {
			named := func(c locktest.Check) bool { return c.Name == limit.Check && c.Inapplicable(info) == "" }
			if !slices.ContainsFunc(locktest.Checks(), named) || limit.Because == "" {
				t.Errorf("%s: no applicable check is named %q, or the limit has no reason: %q",
					info.Name, limit.Check, limit.Because)
			}
		}
		for _, option := range s.Options() {
			if option.Help == "" {
				t.Errorf("%s: option %s has no help", info.Name, option.Name)
			}
			// A user must be able to set each option to the default that the help prints.
			if _, err := strategies.NewVariant(info.Name, map[string]string{option.Name: option.Default}); err != nil {
				t.Errorf("%s: its default is refused: %v", info.Name, err)
			}
		}
	}
}
