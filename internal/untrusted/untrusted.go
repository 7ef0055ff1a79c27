// Package untrusted takes in what others wrote: files, documents, replies of servers and errors. What it
// returns can be shown on a terminal, in a CI log and on a page, and was of a bounded size.
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

// MaxText is the length of the longest text, in bytes. Pages and tables repeat and wrap what names something.
const MaxText = 4 << 10

// Printable returns text as one line that a terminal and a CI system only show. White space becomes
// blanks, and other characters that cannot be printed become escapes, \x1b for one. So does the first
// character of what begins a command to a CI system: ::error::, ##[group], ##vso[task]. A text that is
// longer than MaxText then is cut. It changes nothing when it is applied again.
func Printable(text string) string {
	const cut = "..."
	if len(text) > 4*MaxText { // of which more than MaxText stays: a blank stands for three bytes at most
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
	clean := 0 // before it, all of text is in b
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

// commands says whether a text begins as a command to a CI system.
func commands(text string) bool {
	return strings.HasPrefix(text, "##") ||
		strings.HasPrefix(text, "::") && len(text) > 2 && unicode.IsLetter(rune(text[2]))
}

// recorded ends the names of histograms in documents. These texts are long, and decoded when they are read.
const recorded = "hdr"

// JSON returns a JSON document with each of its strings made printable.
func JSON(document []byte) []byte {
	var out []byte
	name, clean := "", 0 // before clean, all of document is in out
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
			break // it is no document
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
			break // a string can be encoded
		}
		out = append(append(out, document[clean:begin]...), encoded...)
		clean = i + 1
	}
	if clean == 0 {
		return document
	}
	return append(out, document[clean:]...)
}

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 64 << 20

// byteOrderMark is what some editors put before UTF-8. It is no part of the text.
const byteOrderMark = "\ufeff"

// ReadFile reads a regular file of at most MaxFile bytes, without a byte order mark. It refuses everything else at
// once: a FIFO would have it wait, and a device may have no end.
func ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a FIFO waits for its writer
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
		return nil, &os.PathError{Op: "read", Path: name, Err: errors.New("it is no regular file")}
	}
	var content []byte
	large := about.Size() > MaxFile // it is not read: that takes a second
	if !large {
		content, err = io.ReadAll(io.LimitReader(f, MaxFile+1)) // it may grow meanwhile
	}
	if err != nil {
		return nil, err
	}
	if large || len(content) > MaxFile {
		return nil, &os.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is larger than %d MiB", MaxFile>>20)}
	}
	return bytes.TrimPrefix(content, []byte(byteOrderMark)), nil
}

// Open opens a file to read it as a stream of any length: the reader bounds what it keeps. It may be a pipe.
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
