package layout

import "strings"

// Paint colours words, or leaves them as they are.
type Paint bool

// Bold has text stand out as a heading.
func (p Paint) Bold(s string) string { return p.with("\x1b[1m", s) }

// Red has text stand out as a fault.
func (p Paint) Red(s string) string { return p.with("\x1b[1;31m", s) }

// Green has text stand out as right.
func (p Paint) Green(s string) string { return p.with("\x1b[32m", s) }

// Yellow has text stand out as neither right nor a fault.
func (p Paint) Yellow(s string) string { return p.with("\x1b[33m", s) }

// off ends a colour.
const off = "\x1b[0m"

// with paints line by line, for a table's cells.
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
