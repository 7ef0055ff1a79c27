package compare

import (
	"encoding/xml"
	"fmt"
	"io"

	"github.com/lockbench/lockbench/internal/words"
)

// These types encode the part of a JUnit report that CI systems read.
type (
	suite struct {
		XMLName  xml.Name   `xml:"testsuite"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *message `xml:"failure,omitempty"`
		Error   *message `xml:"error,omitempty"`
		Skipped *message `xml:"skipped,omitempty"`
	}
	message struct {
		Text string `xml:"message,attr"`
	}
)

// WriteJUnit writes one test case for each strategy and metric that counts for the verdict. The case fails if the
// metric is worse. If the metric is undecided, the case fails if the rules are strict and require a verdict on the
// metric; otherwise it is skipped. Each broken guarantee is an additional case with an error.
func WriteJUnit(w io.Writer, c *Comparison) error {
	s := suite{Name: "lockbench " + c.Base.Name + " " + c.Head.Name}
	for name, r := range c.results() {
		if !c.Rules.counts(r.Metric) {
			continue
		}
		one := testCase{Class: name, Name: r.Metric}
		said := &message{fmt.Sprintf("%s: %s, %s to %s, %s (%s), smallest detectable change %s: %s", r.Label, r.Verdict,
			r.figure(r.Base), r.figure(r.Head), percent(r.Delta), r.interval(), size(r.Detectable),
			r.Warnings)}
		switch {
		case r.Verdict == Worse, r.Verdict == Undecided && c.Rules.Strict && c.Rules.requiresVerdict(r.Metric):
			one.Failure = said
			s.Failures++
		case r.Verdict == Undecided:
			one.Skipped = said
			s.Skipped++
		}
		s.Cases = append(s.Cases, one)
	}
	for _, broken := range c.Broken {
		s.Cases = append(s.Cases, testCase{Class: "guarantees", Name: "held", Error: &message{broken.Text}})
		s.Errors++
	}
	s.Tests = len(s.Cases)
	text, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode comparison: %w", err)
	}
	return words.Write(w, "comparison", append([]byte(xml.Header), append(text, '\n')...))
}
