package line

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Reply is what Redis answered: one of its fields is meant, by Kind. Text is only
// valid until the reader goes on, but for that of elements.
type Reply struct {
	Kind     byte // as RESP3 writes it: '+' and '$' text, ':' number, '_' nothing, '*' '%' '>' elements, '-' Err
	Text     []byte
	Number   int64
	Elements []Reply
	Err      error // an answer that is an error, or the loss of the connection
}

// flushed says that it tells of the loss of all data.
func (r Reply) flushed() bool {
	return r.Kind == '>' && len(r.Elements) == 2 && string(r.Elements[0].Text) == "invalidate" && r.Elements[1].Kind == '_'
}

// Error is an error that Redis answered with.
type Error string

// Error is Redis's text.
func (e Error) Error() string { return string(e) }

// RedisError tells go-redis and others where it came from.
func (e Error) RedisError() {}

var errProtocol = errors.New("redis does not speak RESP3")

// read reads one reply. Text of the outermost one stays in the reader's buffer if
// it fits.
func read(r *bufio.Reader, copied bool) (Reply, error) {
	head, err := r.ReadSlice('\n')
	if err != nil {
		return Reply{}, err
	}
	if len(head) < 3 || head[len(head)-2] != '\r' {
		return Reply{}, errProtocol
	}
	kind, rest := head[0], head[1:len(head)-2]
	switch kind {
	case '+', ',', '#', '(':
		if copied {
			rest = append([]byte(nil), rest...)
		}
		return Reply{Kind: '+', Text: rest}, nil
	case '-':
		return Reply{Kind: '-', Err: Error(rest)}, nil
	case '_':
		return Reply{Kind: '_'}, nil
	}
	n, err := number(rest)
	if err != nil {
		return Reply{}, err
	}
	switch kind {
	case ':':
		return Reply{Kind: ':', Number: n}, nil
	case '$', '=', '!':
		if n < 0 {
			return Reply{Kind: '_'}, nil
		}
		return text(r, kind, int(n), copied)
	case '%', '|':
		n *= 2
	case '*', '>', '~':
	default:
		return Reply{}, fmt.Errorf("%w: a reply begins with %q", errProtocol, kind)
	}
	if n < 0 {
		return Reply{Kind: '_'}, nil
	}
	reply := Reply{Kind: kind, Elements: make([]Reply, 0, min(n, 1024))}
	for range n {
		element, err := read(r, true)
		if err != nil {
			return Reply{}, err
		}
		reply.Elements = append(reply.Elements, element)
	}
	return reply, nil
}

func text(r *bufio.Reader, kind byte, n int, copied bool) (Reply, error) {
	var body []byte
	if !copied && n+2 <= r.Size() {
		peeked, err := r.Peek(n + 2)
		if err != nil {
			return Reply{}, err
		}
		body = peeked[:n]
		_, _ = r.Discard(n + 2) // it was peeked at
	} else {
		body = make([]byte, n+2)
		if _, err := io.ReadFull(r, body); err != nil {
			return Reply{}, err
		}
		body = body[:n]
	}
	if kind == '!' {
		return Reply{Kind: '-', Err: Error(body)}, nil
	}
	return Reply{Kind: '$', Text: body}, nil
}

func number(digits []byte) (n int64, err error) {
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return 0, errProtocol
	}
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, errProtocol
		}
		n = 10*n + int64(d-'0')
	}
	if negative {
		n = -n
	}
	return n, nil
}

// write appends a command.
func write(b []byte, args []string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, '\r', '\n')
	for _, arg := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(arg)), 10)
		b = append(b, '\r', '\n')
		b = append(b, arg...)
		b = append(b, '\r', '\n')
	}
	return b
}
