package compare

import (
	"fmt"
	"strings"
)

// Glance writes one pair in a line: the primary metric of each strategy under both builds, without
// a verdict.
func Glance(base, head Side, rules Rules) string {
	primary := rules.ordered()[0]
	var parts []string
	for _, name := range base.titles() {
		r := newResult(primary, rules, base.sessions(primary, name), head.sessions(primary, name))
		if r == nil {
			parts = append(parts, name+" nothing that can be compared")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s against %s", name, r.figure(r.Base), r.figure(r.Head)))
	}
	return strings.Join(parts, " · ")
}
