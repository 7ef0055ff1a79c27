package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/redlock"
)

func TestValidity(t *testing.T) {
	for _, test := range []struct {
		ttl, elapsed time.Duration
		drift        float64
		want         time.Duration
	}{
		{10 * time.Second, 0, 0.01, 9898 * time.Millisecond},
		{10 * time.Second, 250 * time.Millisecond, 0.01, 9648 * time.Millisecond},
		{30 * time.Second, time.Nanosecond, 0.01, 29697999999},
		{time.Second, 988 * time.Millisecond, 0.01, 0},
		{time.Second, 1500 * time.Millisecond, 0.01, -512 * time.Millisecond},
		{100 * time.Millisecond, 0, 0.01, 97 * time.Millisecond},
		{7 * time.Millisecond, 0, 0.01, 4930 * time.Microsecond},
		{2 * time.Millisecond, 0, 0, 0},
		{24 * time.Hour, 0, 0.01, 85535998 * time.Millisecond},
		{10 * time.Second, 0, 0, 9998 * time.Millisecond},
		{10 * time.Second, 0, 0.25, 7498 * time.Millisecond},
	} {
		if got := redlock.Validity(test.ttl, test.elapsed, test.drift); got != test.want {
			t.Errorf("Validity(%v, %v, %v) = %v, want %v", test.ttl, test.elapsed, test.drift, got, test.want)
		}
	}
}

func TestEveryBadOptionIsNamed(t *testing.T) {
	_, err := strategies.ParseVariants("redlock:mode=both,node-timeout=0s,min-delay=-1ms,max-delay=-2ms," +
		"release=late,drift=1,min-validity=-1s,give-up=0,node-share=2")
	if err == nil {
		t.Fatal("all were accepted")
	}
	for _, want := range []string{
		`no mode "both"`, `no release "late"`, "node-timeout must be at least 1ms", "min-delay must be at least 0",
		"max-delay -2ms is smaller", "drift must be", "min-validity must be at least 0", "give-up must be at least 1",
		"node-share must be a share",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in:\n%v", want, err)
		}
	}
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	three := make([]goredis.Node, 3)
	for name, test := range map[string]struct {
		config goredis.Config
		change func(*redlock.Options)
		want   string
	}{
		"two nodes":    {goredis.Config{Nodes: three[:2], TTL: time.Second}, nil, "at least 3, not 2"},
		"all is drift": {goredis.Config{Nodes: three, TTL: 2 * time.Millisecond}, nil, "-20µs remain after the allowance"},
		"never so valid": {
			goredis.Config{Nodes: three, TTL: time.Second},
			func(o *redlock.Options) { o.MinValidity = 989 * time.Millisecond }, "988ms remain",
		},
	} {
		if _, err := redlock.Open(test.config, quickly(test.change)); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
