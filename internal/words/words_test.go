package words

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTextsOfNumbersAndNames(t *testing.T) {
	t.Parallel()
	known := []string{"spin", "pubsub", "pubsub-broadcast", "PNG"}
	for _, test := range []struct{ got, want string }{
		{Count(0, "pair"), "0 pairs"},
		{Count(1, "pair"), "1 pair"},
		{Count(2, "pair"), "2 pairs"},
		{And(nil), ""},
		{And([]string{"a"}), "a"},
		{And([]string{"a", "b"}), "a and b"},
		{And([]string{"a", "b", "c"}), "a, b and c"},
		{Dotted("", ""), ""},
		{Suggest("--%s", "spn", known), ", did you mean --spin?"},
		{Suggest("%q", "zookeeper", known), ""},
		{nearest("spn", known), "spin"},
		{nearest("SPIN", known), "spin"},
		{nearest("pubsbu", known), "pubsub"},
		{nearest("png", known), "PNG"},
		{nearest("pubsub-brodcast", known), "pubsub-broadcast"},
		{nearest("", known), ""},
		{nearest("x", known), ""},
	} {
		if test.got != test.want {
			t.Errorf("it reads %q, want %q", test.got, test.want)
		}
	}
	parts := []string{"", "a", "", "b", ""}
	given := slices.Clone(parts)
	if got := Dotted(parts...); got != "a · b" || !slices.Equal(parts, given) {
		t.Errorf("it reads %q, of %q", got, parts)
	}
}

func TestDocumentsAreWrittenCompletelyOrNotAtAll(t *testing.T) {
	t.Parallel()
	closed, shut := io.Pipe()
	_ = closed.Close()
	var text, none strings.Builder
	err := errors.Join(
		WriteJSON(&text, "limits", map[string]any{"is": "p99 < 5ms", "of": []int{1}}),
		WriteJSON(&none, "figures", []float64{1, math.NaN()}),
		WriteJSON(shut, "figures", 1),
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
