package observe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func scanned(text string) (lines []string, err error) {
	s := newScanner(strings.NewReader(text))
	for {
		l, err := s.next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		shown := fmt.Sprintf("%d %d %s %q", l.at, l.database, l.from, l.args)
		if l.cut {
			shown += " cut"
		}
		lines = append(lines, shown)
	}
}

func TestMonitorLines(t *testing.T) {
	t.Parallel()
	const at = "1700000000.123456 "
	long := strings.Repeat("v", 2*longestLine)
	for _, test := range []struct{ name, text, want string }{
		{"IPv4", at + `[0 127.0.0.1:50412] "SET" "k" "v"`, `1700000000123456 0 127.0.0.1:50412 ["SET" "k" "v"]`},
		{"IPv6", at + `[3 [::1]:50412] "GET" "k"`, `1700000000123456 3 [::1]:50412 ["GET" "k"]`},
		{"unix", at + `[0 unix:/tmp/a b] c.sock] "PING"`, `1700000000123456 0 unix:/tmp/a b] c.sock ["PING"]`},
		{"script", at + `[15 lua] "get" "k"`, `1700000000123456 15 lua ["get" "k"]`},
		{
			"escapes", at + `[0 lua] "a\\b" "\"" "\n\r\t\a\b" "\xff\x00" ""`,
			`1700000000123456 0 lua ["a\\b" "\"" "\n\r\t\a\b" "\xff\x00" ""]`,
		},
		{"redis-cli", "OK\n\n" + at + "[0 a:1] \"PING\"\n", `1700000000123456 0 a:1 ["PING"]`},
		{"RESP", "+OK\r\n+" + at + "[0 a:1] \"PING\"\r\n", `1700000000123456 0 a:1 ["PING"]`},
		{"byte order mark", "\ufeffOK\n" + at + `[0 a:1] "PING"`, `1700000000123456 0 a:1 ["PING"]`},
		{
			"long value", at + `[0 a:1] "SET" "k" "` + long + "\" \"NX\"\n" + at + `[0 a:1] "PING"`,
			`1700000000123456 0 a:1 ["SET" "k"] cut|1700000000123456 0 a:1 ["PING"]`,
		},
		{"ends within a line", at + "[0 a:1] \"PING\"\n" + at + `[0 a:1] "SE`, `1700000000123456 0 a:1 ["PING"]`},
		{
			"a message between", at + "[0 a:1] \"PING\"\nreconnecting\n" + at + `[0 a:1] "PING"`,
			`1700000000123456 0 a:1 ["PING"]|1700000000123456 0 a:1 ["PING"]`,
		},
	} {
		lines, err := scanned(test.text)
		if got := strings.Join(lines, "|"); got != test.want || err != nil {
			t.Errorf("%s: %s, %v, want %s", test.name, got, err, test.want)
		}
	}
	many, err := scanned(at + `[0 a:1] "DEL"` + strings.Repeat(` "k"`, 2*mostArgs))
	if err != nil || !strings.HasSuffix(many[0], "cut") || strings.Count(many[0], `"k"`) != mostArgs-1 {
		t.Errorf("many arguments: %v, %v", many, err)
	}
}

func TestOtherInputIsRefused(t *testing.T) {
	t.Parallel()
	const head = "1700000000.123456 [0 a:1] "
	for _, test := range []struct{ text, want string }{
		{"", "no line from MONITOR"},
		{"OK\n", "no line from MONITOR"},
		{"OK\nhello\n", `line 2 is not from a MONITOR stream: found "hello", expected a time`},
		{"17000000001234.123456 [0 a:1] \"PING\"\n", "expected a time"},
		{"1700000000.1234 [0 a:1] \"PING\"\n", "expected a time"},
		{"1700000000.123456 0 a:1 \"PING\"\n", "expected a database"},
		{"1700000000.123456 [x a:1] \"PING\"\n", "expected a database"},
		{head + "PING\n", "expected a database"},
		{head + "\"PING\n", "expected arguments in quotes"},
		{head + "\"PING\"\"x\"\n", "expected arguments in quotes"},
		{head + "\"PING\" \n", "expected arguments in quotes"},
		{head + "\"\\q\"\n", "expected arguments in quotes"},
		{head + "\"\\x4\"\n", "expected arguments in quotes"},
		{head + "\"PING\"\na\nb\n", "most lines are not from MONITOR"},
		{"\x1b[2J" + strings.Repeat("x", longestLine*3) + "\n", `found "\x1b[2Jxxx`},
	} {
		_, err := scanned(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "redis-cli "+
			"monitor") {
			t.Errorf("%.60q: %v, want %s and how to capture", test.text, err, test.want)
		}
	}
}

// FuzzRead tests that no stream makes Read panic, and that the figures of its document are never negative.
func FuzzRead(f *testing.F) {
	const at = "1700000000.%06d [0 %s] %s\n"
	for _, commands := range [][]string{
		{`"SET" "k" "v" "NX" "PX" "10"`, `"SET" "k" "w" "NX" "PX" "10"`, `"DEL" "k"`},
		{`"SETNX" "k" "v"`, `"EXPIRE" "k" "10"`, `"GET" "k"`, `"DEL" "k"`, `"UNLINK" "k"`},
		{`"MSETNX" "a" "1" "b"`, `"HINCRBY" "h" "f" "-1"`, `"DELEX" "k" "IFEQ" "v"`, `"SET" "k" "v" "XX" "EXAT" "99"`},
		{`"EVAL" "s" "1" "k" "v"`, `"EVALSHA"`, `"FCALL" "f"`, `"PEXPIRE" "k" "9223372036854775807" "GT"`},
	} {
		var text bytes.Buffer
		for i, c := range commands {
			fmt.Fprintf(&text, at, i, "1.2.3.4:5", c)
			fmt.Fprintf(&text, at, i, "lua", c)
		}
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		d, err := Read(t.Context(), bytes.NewReader(stream), Options{Top: 3, HashKeys: len(stream)%2 == 0})
		if err != nil {
			return
		}
		for _, l := range append(d.Locks, d.All) {
			if l.Tries < 0 || l.Acquisitions < 0 || l.Hold.Count < 0 || l.Waiting < 0 || l.HeldPercent < 0 {
				t.Errorf("negative figures: %+v", l.Counts)
			}
		}
	})
}
