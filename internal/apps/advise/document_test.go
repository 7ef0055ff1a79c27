package advise

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/testkit/golden"
)

// The document in testdata has every part.
func TestAdviceIsWritten(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/advice.json")
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	none := d
	none.Choice, none.Ranking, none.Interrupted, none.Rounds = nil, nil, true, 3
	for file, write := range map[string]func(*bytes.Buffer) error{
		"advice.txt":      func(b *bytes.Buffer) error { return document.WriteTable(b, &d, false) },
		"advice.json":     func(b *bytes.Buffer) error { return document.WriteJSON(b, &d, false) },
		"advice.md":       func(b *bytes.Buffer) error { return document.WriteMarkdown(b, &d, false) },
		"advice-none.txt": func(b *bytes.Buffer) error { return document.WriteTable(b, &none, false) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+file, written.String())
	}
}
