package command

import (
	"testing"

	"github.com/lockbench/lockbench/internal/apps/advise"
)

func TestWhatAnAnswerEndsWith(t *testing.T) {
	t.Parallel()
	choice := &advise.Choice{Name: "spin"}
	for _, test := range []struct {
		advice advise.Document
		code   int
	}{
		{advise.Document{Choice: choice}, ExitOK},
		{advise.Document{}, ExitInvalid},
		{advise.Document{Undecided: &advise.Undecided{Between: []string{"spin", "handoff"}}}, ExitInvalid},
		{advise.Document{Choice: choice, Broken: []string{"spin"}}, ExitSafety},
		{advise.Document{Interrupted: true}, ExitInterrupted},
	} {
		code := ExitOK
		if err := advised(&test.advice, nil); err != nil {
			code = exitCode(t.Context(), err)
		}
		if code != test.code {
			t.Errorf("%+v ends with %d, want %d", test.advice, code, test.code)
		}
	}
}
