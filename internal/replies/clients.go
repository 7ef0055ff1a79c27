package replies

import (
	"iter"
	"strings"

	"github.com/lockbench/lockbench/internal/untrusted"
)

// Clients yields the fields of each connection in a reply to CLIENT LIST. Others chose their names.
func Clients(list string) iter.Seq[map[string]string] {
	return func(yield func(map[string]string) bool) {
		for line := range strings.Lines(list) {
			client := map[string]string{}
			for field := range strings.FieldsSeq(line) {
				name, value, _ := strings.Cut(field, "=")
				client[untrusted.Printable(name)] = untrusted.Printable(value)
			}
			if len(client) > 0 && !yield(client) {
				return
			}
		}
	}
}
