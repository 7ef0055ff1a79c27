package postgres

import (
	"bytes"
	"encoding/binary"
	"regexp"
	"strings"
	"sync"
)

// commands stores the prepared statements by name.
type commands struct {
	mu    sync.Mutex
	named map[string]string
}

// Commands returns the names of the executed statements in data of the protocol: the function that a
// SELECT calls, or the first word. A Parse message alone does not count.
func (c *commands) Commands(written []byte) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.named == nil {
		c.named = map[string]string{}
	}
	var names []string
	add := func(sql string) {
		if name := nameOf(sql); name != "" {
			names = append(names, name)
		}
	}
	for len(written) >= 5 {
		kind, size := written[0], int(binary.BigEndian.Uint32(written[1:5]))
		if kind == 0 || size < 4 || len(written) < 1+size { // the start of a connection, or an incomplete message
			break
		}
		texts := bytes.SplitN(written[5:1+size], []byte{0}, 3)
		switch {
		case kind == 'Q':
			add(string(texts[0]))
		case kind == 'P' && len(texts) > 1:
			c.named[string(texts[0])] = string(texts[1])
		case kind == 'B' && len(texts) > 1:
			add(c.named[string(texts[1])])
		}
		written = written[1+size:]
	}
	return names
}

var called = regexp.MustCompile(`\b([a-z_]+)\(`)

// nameOf returns a statement's name; "" for statements that open a connection.
func nameOf(sql string) string {
	sql = strings.ToLower(strings.TrimSpace(sql))
	first, _, _ := strings.Cut(sql, " ")
	switch {
	case sql == "", strings.Contains(sql, "pg_is_in_recovery"), strings.HasPrefix(sql, "--"), sql == "select 1":
		return ""
	case strings.HasSuffix(strings.TrimSuffix(sql, " skip locked"), "for update"):
		return "select for update"
	case first == "select":
		if function := called.FindStringSubmatch(sql); function != nil {
			return function[1]
		}
	}
	return strings.TrimSuffix(first, ";")
}
