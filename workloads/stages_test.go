package workloads

import (
	"strings"
	"testing"
	"time"
)

func TestAStageComesBack(t *testing.T) {
	for _, text := range []string{"30s:500", "30s:0", "1m30s:2000/s", "500ms:0.5/s"} {
		var s Stage
		if err := s.UnmarshalText([]byte(text)); err != nil || s.String() != text {
			t.Errorf("%s reads as %v: %v", text, s, err)
		}
	}
}

func TestStagesRefuseWhatIsNone(t *testing.T) {
	for _, text := range []string{"", "30s", "30s:", "x:5", "0s:5", "-1s:5", "1s:-5", "1s:5/x", "1s:-5/s", "1s:2.5"} {
		if err := new(Stage).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestStagesAreTheWindow(t *testing.T) {
	var d Draft
	if err := d.Give("stage", "1s:5,2s:50"); err != nil {
		t.Fatal(err)
	}
	if err := d.Give("stage", "1s:0"); err != nil {
		t.Fatal(err)
	}
	points, err := d.Points()
	if err != nil {
		t.Fatal(err)
	}
	w := points[0].Workload
	if err := w.Validate(); err != nil || w.Clients != 50 || time.Duration(w.Duration) != 4*time.Second {
		t.Errorf("%+v: %v", w, err)
	}
	w.Clients, w.Duration, w.Iterations, w.Rate = 10, 1, 5, 3
	err = w.Validate()
	for _, fault := range []string{
		"needs more than the 10 clients", "--duration is 1ns", "--iterations is not supported", "does not fit the loop",
	} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q is not among the faults:\n%v", fault, err)
		}
	}
}
