// Package observe reconstructs the contention of locks from a captured Redis MONITOR stream. The data flows through the
// files in this order:
//   - monitor.go parses lines.
//   - commands.go converts the commands to steps.
//   - shapes.go recognizes operations on locks in the steps of a command or script.
//   - keys.go stores the keys and decides which keys are locks.
//   - leases.go reconstructs leases and waits.
//   - figures.go counts leases and waits.
//   - document.go presents the result.
//   - findings.go explains the result.
package observe

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/lockbench/lockbench/internal/untrusted"
)

// Limits for the lines of a stream, which protect the memory against a hostile stream.
const (
	longestLine = 64 << 10 // bytes; the rest of a longer line is ignored
	mostArgs    = 256      // per command
)

// line is a command as MONITOR shows it:
//
//	1700000000.123456 [0 127.0.0.1:50412] "SET" "order:7" "f3a9" "NX" "PX" "30000"
//	1700000000.123460 [0 lua] "GET" "order:7"
//
// The bytes of a line are valid until the next line is read.
type line struct {
	at       int64 // Redis's clock, µs
	database int
	from     []byte // the client's address: IPv4, [IPv6], unix:PATH, or lua
	inner    bool   // a script executed it
	own      bool   // lockbench sent it
	args     [][]byte
	cut      bool // arguments are missing, because the line or the command is too long
}

type scanner struct {
	in    *bufio.Reader
	texts []byte // buffer for the line's arguments, without escapes
	line  line
	own   []byte // address of lockbench's other connection, whose commands do not count; empty for a file

	counted
	first error // about the first malformed line
}

// counted counts the lines and commands that were read from a stream.
type counted struct {
	number    int64 // all lines
	commands  int64
	malformed int64 // lines that are not from MONITOR
}

func (c *counted) add(o counted) {
	c.number += o.number
	c.commands += o.commands
	c.malformed += o.malformed
}

func newScanner(in io.Reader) *scanner {
	return &scanner{in: bufio.NewReaderSize(in, longestLine), texts: make([]byte, 0, longestLine)}
}

// next reads the next command. It skips blank lines and the reply OK to MONITOR. It counts and skips lines that are not
// from MONITOR, because tools write messages between the lines of MONITOR. Only the first line must be from MONITOR. At
// the end it returns io.EOF.
func (s *scanner) next() (*line, error) {
	for {
		text, err := s.in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		if len(text) == 0 && err != nil {
			return nil, s.ended(err)
		}
		s.number++
		content := bytes.TrimRight(text, "\r\n")
		if s.number == 1 {
			content = bytes.TrimPrefix(content, []byte("\ufeff"))
		}
		content = bytes.TrimPrefix(content, []byte("+")) // RESP
		wrong := error(nil)
		skip := len(bytes.TrimSpace(content)) == 0 || string(content) == "OK"
		if !skip {
			wrong = s.parse(content, long)
		}
		for long { // skip the rest of the line
			_, err = s.in.ReadSlice('\n')
			long = errors.Is(err, bufio.ErrBufferFull)
		}
		switch {
		case skip:
		case wrong == nil && len(s.own) > 0 && bytes.Equal(s.line.from, s.own):
			s.line.own = true
			return &s.line, nil
		case wrong == nil:
			s.commands++
			return &s.line, nil
		case err != nil: // the last line may be incomplete
		case s.commands == 0:
			return nil, wrong
		default:
			s.malformed++
			s.first = cmp.Or(s.first, wrong)
		}
		if err != nil {
			return nil, s.ended(err)
		}
	}
}

// ended returns the error for the end of a stream: io.EOF, or the reason why the stream cannot be used.
func (s *scanner) ended(err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read line %d: %w", s.number+1, err)
	case len(s.own) > 0: // a live server may have received no command
	case s.commands == 0:
		return errors.New("the stream contains no line from MONITOR" + howToCapture)
	case s.malformed > s.commands:
		return fmt.Errorf("most lines are not from MONITOR; the first: %w", s.first)
	}
	return io.EOF
}

const howToCapture = "\nnext: capture one: redis-cli monitor | head -n 200000 > capture"

// refuse returns an error that reports why a line is not from MONITOR.
func (s *scanner) refuse(text []byte, expected string) error {
	const shown = 40
	if len(text) > shown {
		text = append(text[:shown:shown], "..."...)
	}
	return fmt.Errorf("line %d is not from a MONITOR stream: found %s, expected %s%s",
		s.number, untrusted.Printable(strconv.Quote(string(text))), expected, howToCapture)
}

// parse parses a line. If long is set, text is a line that was cut off because it is too long.
func (s *scanner) parse(text []byte, long bool) error {
	l := &s.line
	*l = line{args: l.args[:0], cut: long}
	s.texts = s.texts[:0]
	rest, ok := l.clock(text)
	if !ok {
		return s.refuse(text, `a time in µs, as in 1700000000.123456 [0 127.0.0.1:50412] "GET" "key"`)
	}
	if rest, ok = l.origin(rest); ok { // a copy, because the next read may overwrite the buffer
		s.texts = append(s.texts, l.from...)
		l.from = slices.Clip(s.texts)
	} else {
		return s.refuse(text, `a database and an address, as in 1700000000.123456 [0 127.0.0.1:50412] "GET" "key"`)
	}
	for len(rest) > 0 {
		if len(l.args) == mostArgs {
			l.cut = true
			break
		}
		from := len(s.texts)
		if rest, ok = s.argument(rest); ok {
			l.args = append(l.args, s.texts[from:len(s.texts):len(s.texts)])
		} else if !long {
			return s.refuse(text, `arguments in quotes, as in "SET" "key" "value"`)
		} else {
			break
		}
	}
	if len(l.args) == 0 {
		return s.refuse(text, `a command, as in "GET" "key"`)
	}
	return nil
}

// clock parses the time: seconds, a point and six digits of µs.
func (l *line) clock(text []byte) (rest []byte, ok bool) {
	const longestSeconds = 11
	point := bytes.IndexByte(text[:min(len(text), longestSeconds+1)], '.')
	if point < 1 || len(text) < point+8 || text[point+7] != ' ' {
		return nil, false
	}
	for i, c := range text[:point+7] {
		if i == point {
			continue
		}
		if c < '0' || c > '9' {
			return nil, false
		}
		l.at = l.at*10 + int64(c-'0')
	}
	return text[point+8:], true
}

// origin parses [DATABASE ADDRESS]. The path of a unix socket may contain blanks and brackets.
func (l *line) origin(text []byte) (rest []byte, ok bool) {
	end := bytes.Index(text, []byte(`] "`))
	blank := bytes.IndexByte(text, ' ')
	const longestNumber = 6
	if end < 0 || text[0] != '[' || blank < 2 || blank >= end || blank > longestNumber {
		return nil, false
	}
	for _, c := range text[1:blank] {
		if c < '0' || c > '9' {
			return nil, false
		}
		l.database = l.database*10 + int(c-'0')
	}
	l.from = text[blank+1 : end]
	l.inner = string(l.from) == "lua"
	return text[end+2:], true
}

// argument parses one quoted argument, and appends its value to texts. Redis has escaped the argument by its function
// sdscatrepr.
func (s *scanner) argument(text []byte) (rest []byte, ok bool) {
	if text[0] != '"' {
		return nil, false
	}
	text = text[1:]
	for len(text) > 0 {
		plain := bytes.IndexAny(text, `"\`)
		if plain < 0 {
			return nil, false
		}
		s.texts = append(s.texts, text[:plain]...)
		quote := text[plain] == '"'
		if text = text[plain+1:]; quote {
			break
		}
		if len(text) == 0 {
			return nil, false
		}
		c, used := text[0], 1
		switch c {
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'a':
			c = '\a'
		case 'b':
			c = '\b'
		case 'x':
			if len(text) < 3 || digit(text[1]) < 0 || digit(text[2]) < 0 {
				return nil, false
			}
			c, used = byte(digit(text[1])<<4|digit(text[2])), 3
		case '"', '\\':
		default:
			return nil, false
		}
		s.texts, text = append(s.texts, c), text[used:]
		if len(text) == 0 {
			return nil, false
		}
	}
	switch {
	case len(text) == 0:
		return nil, true
	case text[0] != ' ' || len(text) == 1:
		return nil, false
	}
	return text[1:], true
}

// digit returns the value of a hexadecimal digit; −1 if c is not a hexadecimal digit.
func digit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
