package workloads

import (
	"fmt"
	"strings"
	"testing"
)

func TestOptionsWithoutEffectAreSaid(t *testing.T) {
	for options, want := range map[string]string{
		"arrivals=poisson":                                     "--arrivals has no effect without --rate",
		"arrivals=poisson rate=10/s":                           "",
		"arrivals=constant stage=1s:10/s":                      "",
		"fence=off":                                            "--fence has no effect without --work counter",
		"fence=all work=counter":                               "",
		"key-dist=zipf:0.99":                                   "--key-dist zipf:0.99 has no effect on one key",
		"key-dist=zipf:0.99 keys=1,8":                          "", // at one of the points it has
		"key-dist=hotspot:0.8/8 keys=4":                        "there are only 4 keys",
		"key-dist=hotspot:0.8/8 keys=8":                        "there are only 8 keys",
		"key-dist=hotspot:0.8/7 keys=8":                        "",
		"key-dist=hotspot:0.8/2,uniform keys=1":                "on one key",
		"duration=3s iterations=10":                            "--duration has no effect with --iterations",
		"duration=3s":                                          "",
		"work=spin":                                            "--work spin has no effect without --hold",
		"work=spin hold=1ms":                                   "",
		"coalesce=true clients=5":                              "--coalesce has no effect with one client an instance",
		"coalesce=true clients=5 instances=1":                  "",
		"coalesce=false clients=5":                             "",
		"pool=11 clients=100":                                  "--pool 11 has no effect beyond the 10 clients of an instance",
		"pool=10 clients=100":                                  "",
		"fault=waiter-crash:at=1s,every=4s duration=5s":        "every has no effect",
		"fault=waiter-crash:at=1s,every=3s duration=5s":        "",
		"fault=waiter-crash:at=1s,every=9s iterations=1000":    "",
		"fence=off arrivals=constant":                          "--arrivals | --fence",
		"clients=5 keys=1 hold=1ms think=1ms ttl=1s timeout=0": "",
	} {
		var draft Draft
		for option := range strings.FieldsSeq(options) {
			name, value, _ := strings.Cut(option, "=")
			if err := draft.Give(name, value); err != nil {
				t.Fatalf("%s: %v", options, err)
			}
		}
		idle := fmt.Sprint(draft.Idle())
		for part := range strings.SplitSeq(want, " | ") {
			if want == "" && idle != "[]" || !strings.Contains(idle, part) {
				t.Errorf("%s: said %s, want %q", options, idle, want)
			}
		}
	}
}
