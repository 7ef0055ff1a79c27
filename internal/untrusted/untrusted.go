// Package untrusted reads what other people and programs wrote: files, documents, replies of servers and errors. Its
// results have a limited size and are safe to show on a terminal, in a CI log and on a page.
package untrusted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// MaxText is the length of the longest text, in bytes. The limit is low because pages and tables repeat and wrap names.
const MaxText = 4 << 10

// Printable returns text as one line that a terminal or a CI system only displays and does not interpret. White space
// becomes blanks. Other characters that cannot be printed become escapes such as \x1b, and so does the first character
// of a command to a CI system: ::error::, ##[group], ##vso[task]. A result longer than MaxText is cut. Printable does
// not change its own results.
func Printable(text string) string {
	const cut = "..."
	if len(text) > 4*MaxText { // more than MaxText remains, because at most three bytes become one blank
		text = text[:4*MaxText]
	}
	text = printable(text)
	if len(text) <= MaxText {
		return text
	}
	end := MaxText - len(cut)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cut
}

func printable(text string) string {
	var b strings.Builder
	clean := 0 // text[:clean] has been written to b
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		shown := ""
		switch {
		case r != ' ' && unicode.IsSpace(r):
			shown = " "
		case r == utf8.RuneError && size == 1, commands(text[i:]):
			shown = fmt.Sprintf(`\x%02x`, text[i])
		case !unicode.IsPrint(r):
			shown = strings.Trim(strconv.QuoteRuneToASCII(r), "'")
		}
		if shown != "" {
			b.WriteString(text[clean:i] + shown)
			clean = i + size
		}
		i += size
	}
	return b.String() + text[clean:]
}

// commands reports whether a text begins like a command to a CI system.
func commands(text string) bool {
	return strings.HasPrefix(text, "##") ||
		strings.HasPrefix(text, "::") && len(text) > 2 && unicode.IsLetter(rune(text[2]))
}

// recorded is the suffix of the names of document fields that hold a histogram. The text of a histogram is long, and
// readers decode it, so it is not cut.
const recorded = "hdr"

// JSON returns a JSON document with each of its strings made printable.
func JSON(document []byte) []byte {
	var out []byte
	name, clean := "", 0 // document[:clean] has been appended to out
	for i := 0; i < len(document); i++ {
		if document[i] != '"' {
			continue
		}
		begin := i
		for i++; i < len(document) && document[i] != '"'; i++ {
			if document[i] == '\\' {
				i++
			}
		}
		var text string
		if i >= len(document) || json.Unmarshal(document[begin:i+1], &text) != nil {
			break // it is not a JSON document
		}
		shown := Printable(text)
		if rest := bytes.TrimLeft(document[i+1:], " \t\r\n"); bytes.HasPrefix(rest, []byte(":")) {
			name = shown
		} else if strings.HasSuffix(name, recorded) {
			shown = printable(text)
		}
		if shown == text {
			continue
		}
		encoded, err := json.Marshal(shown)
		if err != nil {
			break // cannot happen for a string
		}
		out = append(append(out, document[clean:begin]...), encoded...)
		clean = i + 1
	}
	if clean == 0 {
		return document
	}
	return append(out, document[clean:]...)
}

// MaxFile is the size of the largest file that ReadFile reads, in bytes.
const MaxFile = 64 << 20

// byteOrderMark is a prefix that some editors put before UTF-8. It is not part of the text.
const byteOrderMark = "\ufeff"

// ReadFile reads a regular file of at most MaxFile bytes, without a byte order mark. It refuses all other files at
// once, because a FIFO would block and a device may have no end.
func ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // the open of a FIFO would block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	about, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case about.IsDir():
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("it is a directory")}
	case !about.Mode().IsRegular():
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("not a regular file")}
	}
	var content []byte
	large := about.Size() > MaxFile // do not read it, because that takes a second
	if !large {
		content, err = io.ReadAll(io.LimitReader(f, MaxFile+1)) // it may grow while it is read
	}
	if err != nil {
		return nil, err
	}
	if large || len(content) > MaxFile {
		return nil, &os.PathError{Op: "read", Path: name, Err: fmt.Errorf("larger than %d MiB", MaxFile>>20)}
	}
	return bytes.TrimPrefix(content, []byte(byteOrderMark)), nil
}

// Open opens a file of any length for reading as a stream. The caller must limit what it keeps. The file may be a pipe.
func Open(name string) (*os.File, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	about, err := f.Stat()
	if err == nil && about.IsDir() {
		err = &os.PathError{Op: "read", Path: name, Err: errors.New("it is a directory")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
