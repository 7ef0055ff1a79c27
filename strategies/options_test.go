package strategies_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
)

type colour string

type shared struct {
	Share float64 `opt:"share"`
}

// allKinds has an option of every type that can be set.
type allKinds struct {
	shared
	Wait   time.Duration `opt:"wait"`
	Name   string        `opt:"name"`
	On     bool          `opt:"on"`
	Count  int           `opt:"count"`
	Colour colour        `opt:"colour"`
	Hidden string
}

func (k allKinds) Validate() error {
	if k.Wait <= 0 || k.Count > 250 {
		return errors.New("wait must be positive, and count at most 250")
	}
	return nil
}

func kinds() strategies.Strategy {
	return strategies.Define(strategies.Info{Name: "kinds"}, allKinds{Wait: time.Second, Count: 7},
		func(strategies.Config, allKinds) (baselines.NoopLocker, error) { return baselines.NoopLocker{}, nil })
}

func TestOptionsOfEveryKind(t *testing.T) {
	var options []string
	for _, o := range kinds().Options() {
		options = append(options, o.Name+"="+o.Default)
	}
	if got, want := strings.Join(options, " "),
		"share=0 wait=1s name= on=false count=7 colour="; got != want {
		t.Errorf("the options are %s, want %s", got, want)
	}
	v, err := kinds().Variant(map[string]string{
		"share": "0.50", "wait": "1500us", "name": "", "on": "T", "count": "-0x10", "colour": "red",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.Name(),
		"kinds:colour=red,count=-16,name=,on=true,share=0.5,wait=1.5ms"; got != want {
		t.Errorf("the variant is named %s, want %s", got, want)
	}
}

// Values of a wrong type and unknown options must be refused. command/testdata/badinputs.txt tests the messages.
func TestInvalidOptionsAreRefused(t *testing.T) {
	for _, setting := range []string{"wait=5", "wait=", "on=yes", "count=1.5", "share=half", "Hidden=x", "Wait=1s"} {
		name, value, _ := strings.Cut(setting, "=")
		if _, err := kinds().Variant(map[string]string{name: value}); err == nil {
			t.Errorf("%s was accepted", setting)
		}
	}
	// A refused setting leaves its option at the default, which Validate accepts.
	_, err := kinds().Variant(map[string]string{"wait": "5", "count": "many"})
	if n := strings.Count(err.Error(), "\n") + 1; n != 2 {
		t.Errorf("%d faults, want 2:\n%v", n, err)
	}
}
