package words

import (
	"slices"
	"testing"
)

func TestNounsFollowTheirNumber(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 pairs", 1: "1 pair", 2: "2 pairs"} {
		if got := Count(n, "pair"); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}

func TestAndStandsBeforeTheLast(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := And(names); got != want {
			t.Errorf("it reads %q, want %q", got, want)
		}
	}
}

func TestDotsStandBetweenWhatIsThere(t *testing.T) {
	t.Parallel()
	parts := []string{"", "a", "", "b", ""}
	given := slices.Clone(parts)
	if got := Dotted(parts...); got != "a · b" || !slices.Equal(parts, given) {
		t.Errorf("it reads %q, of %q", got, parts)
	}
	if got := Dotted("", ""); got != "" {
		t.Errorf("of nothing it reads %q", got)
	}
}
