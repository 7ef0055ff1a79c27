package internal_test

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/words"
)

func TestTextsOfNumbersAndNames(t *testing.T) {
	t.Parallel()
	known := []string{"spin", "pubsub", "pubsub-broadcast", "PNG"}
	for _, test := range []struct{ got, want string }{
		{words.Count(0, "pair"), "0 pairs"},
		{words.Count(1, "pair"), "1 pair"},
		{words.Count(2, "pair"), "2 pairs"},
		{words.And(nil), ""},
		{words.And([]string{"a"}), "a"},
		{words.And([]string{"a", "b"}), "a and b"},
		{words.And([]string{"a", "b", "c"}), "a, b and c"},
		{words.Dotted("", ""), ""},
		{words.Suggest("--%s", "spn", known), ", did you mean --spin?"},
		{words.Suggest("%q", "zookeeper", known), ""},
		{words.Suggest("%s", "spn", known), ", did you mean spin?"},
		{words.Suggest("%s", "SPIN", known), ", did you mean spin?"},
		{words.Suggest("%s", "pubsbu", known), ", did you mean pubsub?"},
		{words.Suggest("%s", "png", known), ", did you mean PNG?"},
		{words.Suggest("%s", "pubsub-brodcast", known), ", did you mean pubsub-broadcast?"},
		{words.Suggest("%s", "", known), ""},
		{words.Suggest("%s", "x", known), ""},
		{words.Near("spni", known), "spin"},
		{words.Near("pngs", known), "PNG"},
		{words.Near("apngs", known), ""},
		{words.Near("pnx", known), "PNG"},
		{words.Near("pyx", known), ""},
		{words.Near("pubsub-brodcst", known), "pubsub-broadcast"},
		{words.Near("pubsub-brdcst", known), ""},
	} {
		if test.got != test.want {
			t.Errorf("it reads %q, want %q", test.got, test.want)
		}
	}
	parts := []string{"", "a", "", "b", ""}
	given := slices.Clone(parts)
	if got := words.Dotted(parts...); got != "a · b" || !slices.Equal(parts, given) {
		t.Errorf("it reads %q, of %q", got, parts)
	}
}

func TestDocumentsAreWrittenAtomically(t *testing.T) {
	t.Parallel()
	closed, shut := io.Pipe()
	_ = closed.Close()
	var text, none strings.Builder
	err := errors.Join(
		words.WriteJSON(&text, "limits", map[string]any{"is": "p99 < 5ms", "of": []int{1}}),
		words.WriteJSON(&none, "figures", []float64{1, math.NaN()}),
		words.WriteJSON(shut, "figures", 1),
	)
	if want := "{\n  \"is\": \"p99 < 5ms\",\n  \"of\": [\n    1\n  ]\n}\n"; text.String() != want || none.Len() > 0 {
		t.Errorf("wrote %q, want %q; of what cannot be encoded %q", text.String(), want, none.String())
	}
	first, second, _ := strings.Cut(err.Error(), "\n")
	if !strings.HasPrefix(first, "encode figures: ") || !strings.HasPrefix(second, "write figures: ") ||
		!errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the errors are %v", err)
	}
}
