package layout

import "strings"

// Paint colours words if it is true.
type Paint bool

// Bold marks text as a heading.
func (p Paint) Bold(s string) string { return p.with("\x1b[1m", s) }

// Red marks text as a fault.
func (p Paint) Red(s string) string { return p.with("\x1b[1;31m", s) }

// Green marks text as right.
func (p Paint) Green(s string) string { return p.with("\x1b[32m", s) }

// Yellow marks text as neither right nor a fault.
func (p Paint) Yellow(s string) string { return p.with("\x1b[33m", s) }

// off ends a colour.
const off = "\x1b[0m"

// with colours each line on its own, for a table's cells.
func (p Paint) with(code, s string) string {
	if !p {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = code + line + off
		}
	}
	return strings.Join(lines, "\n")
}
