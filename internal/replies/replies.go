// Package replies parses text replies of Redis to INFO, CLUSTER INFO and CLIENT LIST.
package replies

import (
	"iter"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/untrusted"
)

// Info maps each field of a reply to INFO or CLUSTER INFO to its value.
type Info map[string]string

// ParseInfo parses lines of the form "field:value" and makes them printable. It skips headings and all other lines.
func ParseInfo(text string) Info {
	fields := Info{}
	for line := range strings.Lines(text) {
		field, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if found && field != "" && !strings.HasPrefix(field, "#") {
			fields[untrusted.Printable(field)] = untrusted.Printable(value)
		}
	}
	return fields
}

// Integer returns a field's value, or nil if the reply has no such field or it is not an integer.
func (i Info) Integer(field string) *int64 {
	if n, err := strconv.ParseInt(i[field], 10, 64); err == nil {
		return &n
	}
	return nil
}

// Seconds returns the sum of fields in seconds, or nil if one is missing.
func (i Info) Seconds(fields ...string) *float64 {
	var sum float64
	for _, field := range fields {
		s, err := strconv.ParseFloat(i[field], 64)
		if err != nil {
			return nil
		}
		sum += s
	}
	return &sum
}

// Calls returns the number of calls of each command, from lines such as "cmdstat_get:calls=21,usec=175,…" of the
// section commandstats, or nil if there are none.
func (i Info) Calls() map[string]int64 {
	var calls map[string]int64
	for field, value := range i {
		command, ok := strings.CutPrefix(field, "cmdstat_")
		if !ok {
			continue
		}
		value, ok = strings.CutPrefix(value, "calls=")
		if !ok {
			continue
		}
		value, _, _ = strings.Cut(value, ",")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			if calls == nil {
				calls = map[string]int64{}
			}
			calls[command] = n
		}
	}
	return calls
}

// Clients yields the fields of each connection in a reply to CLIENT LIST. Other programs may have chosen the names, so
// the fields are made printable.
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
