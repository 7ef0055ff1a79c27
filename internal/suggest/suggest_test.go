package suggest

import "testing"

func TestName(t *testing.T) {
	known := []string{"spin", "pubsub", "pubsub-broadcast", "PNG"}
	for given, want := range map[string]string{
		"spn": "spin", "SPIN": "spin", "pubsbu": "pubsub", "png": "PNG",
		"pubsub-brodcast": "pubsub-broadcast", "zookeeper": "", "": "", "x": "",
	} {
		if got := Name(given, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", given, got, want)
		}
	}
}

func TestQuestion(t *testing.T) {
	if got, want := Question("--%s", "spn", []string{"spin"}), ", did you mean --spin?"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	if got := Question("%q", "zookeeper", []string{"spin"}); got != "" {
		t.Errorf("asked %q of a name that is far from all", got)
	}
}
