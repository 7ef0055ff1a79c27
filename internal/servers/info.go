package servers

import (
	"strconv"
	"strings"
)

// info is a reply to INFO, field by field.
type info map[string]string

// parseInfo reads "field:value" lines; headings and anything else are skipped.
func parseInfo(text string) info {
	fields := info{}
	for line := range strings.Lines(text) {
		field, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if found && field != "" && !strings.HasPrefix(field, "#") {
			fields[field] = value
		}
	}
	return fields
}

// integer is a field's value; nil where the server does not tell it.
func (i info) integer(field string) *int64 {
	if n, err := strconv.ParseInt(i[field], 10, 64); err == nil {
		return &n
	}
	return nil
}

// seconds is the sum of fields in seconds; nil where one is missing.
func (i info) seconds(fields ...string) *float64 {
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

// commands are the calls of each command, from the section commandstats:
// "cmdstat_get:calls=21,usec=175,…". It is nil where there are none.
func (i info) commands() map[string]int64 {
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

// published is how many messages a node of a cluster has sent to others for PUBLISH
// and SPUBLISH; nil where CLUSTER INFO has not told. A kind of message that was
// never sent is left out there.
func (i info) published() *int64 {
	if i.integer("cluster_stats_messages_sent") == nil {
		return nil
	}
	sum := value(i.integer("cluster_stats_messages_publish_sent")) + value(i.integer("cluster_stats_messages_publishshard_sent"))
	return &sum
}

// ParseInfo reads a reply to INFO, field by field.
func ParseInfo(text string) map[string]string { return parseInfo(text) }
