package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/internal/words"
)

// WriteJSON writes the report as an indented JSON document. If the report cannot be encoded,
// it writes nothing.
func WriteJSON(w io.Writer, r *Report) error {
	document := *r
	if document.Schema == "" {
		document.Schema = Schema
	}
	// A list without entries is [], not null, so that a reader needs no check.
	if document.Strategies == nil {
		document.Strategies = []Strategy{}
	}
	if document.Runs == nil {
		document.Runs = []Run{}
	}
	return words.WriteJSON(w, "report", document)
}

// ReadJSON reads what WriteJSON wrote. It refuses a truncated document, one that is no
// lockbench report, one of another schema version, and one with damaged histograms or those
// of a layout that lockbench does not write. The error says which. Texts are made printable. It
// ignores unknown fields: a schema's version may gain fields.
func ReadJSON(r io.Reader) (*Report, error) {
	document, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	document = untrusted.JSON(document)
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return nil, explain(document, err)
	}
	if err := checkSchema(head.Schema); err != nil {
		return nil, err
	}
	var report Report
	if err := json.Unmarshal(document, &report); err != nil {
		return nil, explain(document, err)
	}
	if err := checkHistograms(&report); err != nil {
		return nil, fmt.Errorf("report is damaged: %w", err)
	}
	return &report, nil
}

// checkHistograms compares each histogram with the count beside it: after a change of one letter it is still
// valid JSON.
func checkHistograms(r *Report) error {
	for i := range r.Runs {
		run := &r.Runs[i]
		for field, d := range run.distributions() {
			if d == &run.Waiting.PerClient { // it counts time, not waits
				continue
			}
			for _, h := range []struct {
				Histogram
				counted int64
				name    string
			}{{d.Histogram, d.Count, "durations"}, {d.CensoredHistogram, d.Censored, "censored durations"}} {
				if n := h.TotalCount(); n > 0 && n != h.counted {
					return fmt.Errorf("%s, round %d, %s: its histogram has %d %s, not %d",
						run.Strategy, run.Round, field, n, h.name, h.counted)
				}
			}
		}
	}
	return nil
}

// checkSchema accepts this version's schema only.
func checkSchema(schema string) error {
	family, version := cutSchema(Schema)
	gotFamily, got := cutSchema(schema)
	switch {
	case schema == Schema:
		return nil
	case gotFamily != family || got < 1:
		return fmt.Errorf("not a lockbench report: its schema is %q, not %q", schema, Schema)
	case got > version:
		return fmt.Errorf("report of a newer lockbench: its schema is %q, this one reads %q", schema, Schema)
	default:
		return fmt.Errorf("report of an older lockbench: its schema is %q, this one reads %q", schema, Schema)
	}
}

// cutSchema splits "lockbench/report/1"; the version is 0 if there is none.
func cutSchema(schema string) (family string, version int) {
	slash := strings.LastIndex(schema, "/")
	version, err := strconv.Atoi(schema[slash+1:])
	if slash < 0 || err != nil {
		return schema, 0
	}
	return schema[:slash], version
}

// explain says for the user why a document could not be decoded.
func explain(document []byte, err error) error {
	var syntax *json.SyntaxError
	switch {
	case len(bytes.TrimSpace(document)) == 0:
		return errors.New("not a lockbench report: the document is empty")
	case errors.Is(err, errHistogram):
		return fmt.Errorf("report is damaged: %w", err)
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(document)):
		return fmt.Errorf("report is truncated after %d bytes: %w", len(document), err)
	default:
		return fmt.Errorf("not a lockbench report: %w", err)
	}
}
