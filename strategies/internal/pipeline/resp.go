package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// replyError is an error that Redis answers with.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError makes it a redis.Error.
func (replyError) RedisError() {}

// appendCommand appends a command to what is written: an array of bulk strings (RESP,
// https://redis.io/docs/latest/develop/reference/protocol-spec/). Words are written as go-redis writes them.
func appendCommand(out []byte, words []any) ([]byte, error) {
	var digits [32]byte
	out = appendHead(out, '*', len(words))
	for _, word := range words {
		switch w := word.(type) {
		case string:
			out = appendBulk(out, w)
		case *string: // which is an any without another allocation
			out = appendBulk(out, *w)
		case []byte:
			out = appendBulk(out, w)
		case int:
			out = appendBulk(out, strconv.AppendInt(digits[:0], int64(w), 10))
		case int64:
			out = appendBulk(out, strconv.AppendInt(digits[:0], w, 10))
		case uint64:
			out = appendBulk(out, strconv.AppendUint(digits[:0], w, 10))
		case float64:
			out = appendBulk(out, strconv.AppendFloat(digits[:0], w, 'f', -1, 64))
		case bool:
			flag := "0"
			if w {
				flag = "1"
			}
			out = appendBulk(out, flag)
		default:
			return out, fmt.Errorf("a command with a %T cannot be sent", word)
		}
	}
	return out, nil
}

func appendHead(out []byte, kind byte, n int) []byte {
	out = strconv.AppendInt(append(out, kind), int64(n), 10)
	return append(out, '\r', '\n')
}

func appendBulk[T string | []byte](out []byte, text T) []byte {
	out = append(appendHead(out, '$', len(text)), text...)
	return append(out, '\r', '\n')
}

const (
	deepest = 32       // arrays in arrays that a reply may have
	largest = 64 << 20 // bytes that a reply may have
)

// errPart says that more of a reply has to come.
var errPart = errors.New("a part of a reply")

// parser reads a reply, of RESP 2 or 3.
type parser struct {
	in []byte
	at int
}

// parse reads the reply at the front of in, and returns how many bytes it takes, 0 if more of it has to come. A
// string is a string, an integer an int64, a null nil, an error a replyError, an array an []any and a map a
// map[any]any, as in a redis.Cmd. told means that it answers no command.
func parse(in []byte) (value any, told bool, n int, err error) {
	p := parser{in: in}
	told = len(in) > 0 && in[0] == '>'
	value, err = p.value(0)
	switch {
	case errors.Is(err, errPart) && len(in) <= largest:
		return nil, false, 0, nil
	case err != nil:
		return nil, false, 0, fmt.Errorf("read a reply: %w", err)
	}
	return value, told, p.at, nil
}

func (p *parser) value(depth int) (any, error) {
	end := bytes.IndexByte(p.in[p.at:], '\n')
	if end < 0 {
		return nil, errPart
	}
	line := p.in[p.at : p.at+end]
	p.at += end + 1
	if len(line) < 2 || line[len(line)-1] != '\r' || depth > deepest {
		return nil, malformed(line)
	}
	kind, text := line[0], line[1:len(line)-1]
	switch kind {
	case '+', '(':
		return string(text), nil
	case '-':
		return replyError(text), nil
	case '_':
		return nil, nil
	case '#':
		return string(text) == "t", nil
	case ':':
		n, err := strconv.ParseInt(string(text), 10, 64)
		return n, malformedIf(err, line)
	case ',':
		n, err := strconv.ParseFloat(string(text), 64)
		return n, malformedIf(err, line)
	}
	length, err := strconv.Atoi(string(text))
	if err != nil || length < -1 || length > largest {
		return nil, malformed(line)
	}
	if length == -1 {
		return nil, nil
	}
	switch kind {
	case '$', '=', '!':
		return p.bulk(kind, length)
	case '*', '~', '>':
		return p.array(length, depth)
	case '%', '|':
		pairs, err := p.array(2*length, depth)
		if err == nil && kind == '|' { // attributes of the reply that follows
			return p.value(depth + 1)
		}
		return pairsOf(pairs), err
	}
	return nil, malformed(line)
}

func malformed(line []byte) error { return fmt.Errorf("no RESP: %.40q", line) }

func malformedIf(err error, line []byte) error {
	if err != nil {
		return malformed(line)
	}
	return nil
}

func (p *parser) bulk(kind byte, length int) (any, error) {
	if len(p.in)-p.at < length+2 {
		return nil, errPart
	}
	text := string(p.in[p.at : p.at+length])
	p.at += length + 2
	switch {
	case p.in[p.at-2] != '\r' || p.in[p.at-1] != '\n':
		return nil, malformed(p.in[p.at-2 : p.at])
	case kind == '!':
		return replyError(text), nil
	case kind == '=' && length >= 4: // txt: or mkd:
		return text[4:], nil
	}
	return text, nil
}

func (p *parser) array(length, depth int) ([]any, error) {
	all := make([]any, 0, min(length, 64)) // what is claimed need not come
	for range length {
		value, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		all = append(all, value)
	}
	return all, nil
}

func pairsOf(values []any) map[any]any {
	m := make(map[any]any, len(values)/2)
	for i := 0; i+1 < len(values); i += 2 {
		switch values[i].(type) {
		case []any, map[any]any: // no key of a map in Go
		default:
			m[values[i]] = values[i+1]
		}
	}
	return m
}
