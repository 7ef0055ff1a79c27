package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/strategies"
)

func texts(problems []error) []string {
	var all []string
	for _, problem := range problems {
		all = append(all, problem.Error())
	}
	return all
}

func TestEachTakesJoinedErrorsApart(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b\n\n  of two lines"), errors.New("c")
	wrapped := fmt.Errorf("%w because of %w", a, c)
	got := texts(flatten(errors.Join(a, errors.Join(b, wrapped), nil)))
	if diff := cmp.Diff([]string{"a", "b of two lines", "a because of c"}, got); diff != "" {
		t.Error(diff)
	}
	if flatten(nil) != nil {
		t.Error("no error has faults")
	}
}

func TestUnknownStrategiesSuggestTheNearest(t *testing.T) {
	for mistyped, want := range map[string]string{
		"spinn": "spin", "sipn": "spin", "SPIN": "spin", "pub-sub": "pubsub", "blop": "blpop",
		"redsink": "redsync", "loca": "local", "none": "noop", "zzzzzzzzzz": "",
		"gated:sipn": "gated:spin", "gatet:spin": "gated:spin", "gatet:spin:base=1ms": "gated:spin",
	} {
		_, err := strategies.ParseVariants(mistyped + ",noop")
		name := strings.TrimSuffix(mistyped, ":base=1ms")
		fault := fmt.Sprintf("unknown strategy %q", name)
		if want != "" {
			fault += fmt.Sprintf(", did you mean %q?", want)
		}
		if diff := cmp.Diff([]string{fault}, texts(flatten(err))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mistyped, diff)
		}
	}
}

func TestEveryFlagOfRunNamesItsFault(t *testing.T) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	newFlags().register(set)
	makePatient(set)
	free := strings.Fields("strategy workload redis ca-file image topology work fence counter arrivals threshold " +
		"session") // any text can be read
	set.VisitAll(func(flag *pflag.Flag) {
		_ = set.Set(flag.Name, "?")
		err := prefixed(flag.Name, errors.Join(flag.Value.(*patient).problems...))
		if slices.Contains(free, flag.Name) != (err == nil) ||
			err != nil && !strings.HasPrefix(err.Error(), "--"+flag.Name+": ") {
			t.Errorf("--%s ?: %v", flag.Name, err)
		}
	})
}

func TestOrderIsBalancedAndShuffled(t *testing.T) {
	for _, pairs := range []int{1, 2, 7, 12, 100} {
		first := 0
		for _, headFirst := range order(pairs, 1) {
			if headFirst {
				first++
			}
		}
		if first != pairs/2 {
			t.Errorf("the head is first in %d of %d pairs", first, pairs)
		}
	}
	if !slices.Equal(order(100, 1), order(100, 1)) || slices.Equal(order(100, 1), order(100, 2)) {
		t.Error("the order is not the seed's")
	}
}
