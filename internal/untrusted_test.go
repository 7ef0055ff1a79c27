package internal_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/lockbench/lockbench/internal/untrusted"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "",
		"spin:backoff=fixed 150 µs ≥ 錠 <b>": "spin:backoff=fixed 150 µs ≥ 錠 <b>",
		"[::1]:6379 C::D a # b":             `[::1]:6379 C\x3a:D a # b`,
		"\x1b[1A\x1b[2Kheld":                `\x1b[1A\x1b[2Kheld`,
		"a\r\n::error file=x::b\tc":         `a  \x3a:error file=x\x3a:b c`,
		"x ##[error]y ##vso[task]":          `x \x23#[error]y \x23#vso[task]`,
		"\u202egnp.exe\u200b\u2028\x7f\x9b": `\u202egnp.exe\u200b \x7f\x9b`,
		"\U000e0041\ufeff\uFFFD":            `\U000e0041\ufeff` + "\uFFFD",
		`'`:                                 `'`,
	} {
		if got := untrusted.Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A long text must be cut between two characters, and Printable must not change the cut text again. The text of a
// histogram must not be cut.
func TestLongTextsAreTruncated(t *testing.T) {
	t.Parallel()
	for _, letter := range []string{"a", "é", "錠", "\u2028", "\x1b", "::", ":", "#"} {
		long := strings.Repeat(letter, 100_000)
		short := untrusted.Printable(long)
		if n := len(short); n > untrusted.MaxText || n < untrusted.MaxText-8 || !strings.HasSuffix(short, "...") ||
			!onlyShows(short) || untrusted.Printable(short) != short {
			t.Errorf("%q: %d bytes of %d, ends in %q", letter, n, len(long), short[max(0, n-10):])
		}
		if fits := long[:len(letter)*10]; untrusted.Printable(fits) != untrusted.Printable(untrusted.Printable(fits)) {
			t.Errorf("%q is cut", fits)
		}
	}
	long := strings.Repeat("x", 100_000)
	for name, want := range map[string]int{"strategy": untrusted.MaxText, "hdr": len(long), "turns_hdr": len(long)} {
		var read map[string]string
		err := json.Unmarshal(untrusted.JSON([]byte(`{"hdr": "y", "`+name+`" : "`+long+`", "`+long+`": ""}`)), &read)
		if err != nil || len(read[name]) != want || read[long] != "" || len(read) > 3 {
			t.Errorf("%s has %d bytes, want %d (%v)", name, len(read[name]), want, err)
		}
		if _, whole := read[long]; whole {
			t.Error("a name of a field is not cut")
		}
	}
}

// onlyShows reports whether a text has only printable characters and no command to a CI system.
func onlyShows(text string) bool {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return !strings.Contains(text, "::error") && !strings.Contains(text, "##")
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\n::error::b\x1b[2K\xff##[x]")
	f.Fuzz(func(t *testing.T, text string) {
		got := untrusted.Printable(text)
		if !onlyShows(got) || untrusted.Printable(got) != got {
			t.Errorf("%q: %q, again %q", text, got, untrusted.Printable(got))
		}
	})
}

// FuzzJSON checks that untrusted.JSON makes the strings of any document printable and changes nothing else.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"a\u001b": ["\u003a:error::", "x\\\"\n", 1.5e300, true, {"b": null}], "plain": "<é>"}`))
	f.Add([]byte(`{"cut": "\`))
	f.Fuzz(func(t *testing.T, document []byte) {
		var before, after any
		wrong, err := json.Unmarshal(document, &before), json.Unmarshal(untrusted.JSON(document), &after)
		if (wrong == nil) != (err == nil) {
			t.Fatalf("%q: %v, then %v", document, wrong, err)
		}
		if want, apart := printable(before); apart && !reflect.DeepEqual(want, after) {
			t.Errorf("%q became %q, want %q", document, untrusted.JSON(document), want)
		}
	})
}

// printable returns a decoded document with its strings made printable. It returns false if two names in one object
// become equal, so that one value is lost.
func printable(value any) (any, bool) {
	apart := true
	part := func(value any) any {
		same, ok := printable(value)
		apart = apart && ok
		return same
	}
	switch v := value.(type) {
	case string:
		return untrusted.Printable(v), true
	case []any:
		for i := range v {
			v[i] = part(v[i])
		}
	case map[string]any:
		all := map[string]any{}
		for name, value := range v {
			all[untrusted.Printable(name)] = part(value)
		}
		return all, apart && len(all) == len(v)
	}
	return value, apart
}
