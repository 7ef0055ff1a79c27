package jsonio

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := Write(&text, "limits", map[string]any{"is": "p99 < 5ms", "of": []int{1}}); err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"is\": \"p99 < 5ms\",\n  \"of\": [\n    1\n  ]\n}\n"; text.String() != want {
		t.Errorf("wrote %q, want %q", text.String(), want)
	}
}

func TestWhatCannotBeEncodedIsNotWritten(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	err := Write(&text, "figures", []float64{1, math.NaN()})
	if err == nil || !strings.HasPrefix(err.Error(), "encode figures: ") || text.Len() > 0 {
		t.Errorf("error %v, wrote %q", err, text.String())
	}
}

func TestAWriterThatFails(t *testing.T) {
	t.Parallel()
	closed, shut := io.Pipe()
	_ = closed.Close()
	if err := Write(shut, "figures", 1); !errors.Is(err, io.ErrClosedPipe) || !strings.HasPrefix(err.Error(), "write figures: ") {
		t.Errorf("error %v", err)
	}
}
