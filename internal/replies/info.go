// Package replies reads what Redis replies as text: to INFO, CLUSTER INFO and CLIENT LIST.
package replies

import (
	"strconv"
	"strings"
)

// Info is a reply to INFO or CLUSTER INFO, field by field.
type Info map[string]string

// ParseInfo reads "field:value" lines; headings and anything else are skipped.
func ParseInfo(text string) Info {
	fields := Info{}
	for line := range strings.Lines(text) {
		field, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if found && field != "" && !strings.HasPrefix(field, "#") {
			fields[field] = value
		}
	}
	return fields
}

// Integer is a field's value; nil where the server does not tell it.
func (i Info) Integer(field string) *int64 {
	if n, err := strconv.ParseInt(i[field], 10, 64); err == nil {
		return &n
	}
	return nil
}

// Seconds is the sum of fields in seconds; nil where one is missing.
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

// Calls are those of each command, from the section commandstats:
// "cmdstat_get:calls=21,usec=175,…". It is nil where there are none.
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
