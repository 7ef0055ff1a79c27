package pipeline

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("*1\r\n", 40) + ":1\r\n"
	for _, test := range []struct {
		in   string
		want any
		rest string // after the reply
		told bool
		err  string
	}{
		{in: "+OK\r\n:1", want: "OK", rest: ":1"},
		{in: ":-17\r\n", want: int64(-17)},
		{in: "$3\r\na\r\n\r\n", want: "a\r\n"},
		{in: "$-1\r\n+x\r\n", rest: "+x\r\n"},
		{in: "*-1\r\n"},
		{in: "_\r\n"},
		{in: "-MOVED 1 a:1\r\n", want: replyError("MOVED 1 a:1")},
		{in: "!5\r\nERR a\r\n", want: replyError("ERR a")},
		{in: "=5\r\ntxt:a\r\n", want: "a"},
		{in: "#t\r\n", want: true},
		{in: ",1.5\r\n", want: 1.5},
		{in: "(12345678901234567890\r\n", want: "12345678901234567890"},
		{in: "*3\r\n:1\r\n$-1\r\n*1\r\n-ERR b\r\n", want: []any{int64(1), nil, []any{replyError("ERR b")}}},
		{in: "~1\r\n+a\r\n", want: []any{"a"}},
		{in: "%1\r\n+a\r\n:2\r\n", want: map[any]any{"a": int64(2)}},
		{in: "|1\r\n+a\r\n:2\r\n:3\r\n", want: int64(3)},
		{in: ">2\r\n+a\r\n+b\r\n:1\r\n", want: []any{"a", "b"}, rest: ":1\r\n", told: true},

		{in: "%1\r\n*1\r\n+a\r\n:2\r\n", want: map[any]any{}}, // no key of a map in Go
		{in: "HTTP/1.1 400\r\n", err: "no RESP"},
		{in: ":1\n", err: "no RESP"},
		{in: ":x\r\n", err: "no RESP"},
		{in: "$2\r\nabc\r\n", err: "no RESP"},
		{in: "*99999999999\r\n", err: "no RESP"},
		{in: "$-2\r\n", err: "no RESP"},
		{in: deep, err: "no RESP"},
	} {
		value, told, n, err := parse([]byte(test.in))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%.40q: %v, want %s", test.in, err, test.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(value, test.want) || told != test.told || test.in[n:] != test.rest {
			t.Errorf("%.40q is %#v, %v, %d bytes, %v", test.in, value, told, n, err)
		}
	}
}

// What a server claims to send takes no memory before it comes.
func TestArraysThatAreOnlyClaimed(t *testing.T) {
	in := []byte(strings.Repeat("*60000000\r\n", deepest) + "$1000000\r\n" + strings.Repeat("x", 900000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, _, _ = parse(in)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes", n)
	}
}

// What is no whole reply yet takes nothing, however it begins, and nothing panics.
func FuzzParse(f *testing.F) {
	for _, in := range []string{"+OK\r\n", "*2\r\n$1\r\na\r\n_\r\n", "%1\r\n+a\r\n,2\r\n", ">1\r\n#f\r\n"} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		_, _, n, err := parse(in)
		if n < 0 || n > len(in) || err != nil && n != 0 {
			t.Fatalf("%q takes %d bytes, %v", in, n, err)
		}
		if n == 0 {
			return
		}
		if _, _, part, err := parse(in[:n-1]); part != 0 || err != nil {
			t.Errorf("%q without its last byte takes %d bytes, %v", in[:n], part, err)
		}
	})
}
