package servers

import "testing"

// A round trip is timed as far as the user may send the command.
func TestRoundTrips(t *testing.T) {
	t.Parallel()
	p := process(t, "--user", "noscripts", "on", "nopass", "~*", "&*", "+@all", "-eval", "-evalsha", "-script")
	for who, scripts := range map[string]bool{"": true, "noscripts:any@": false} {
		s := open(t, Options{Address: "redis://" + who + p.Addr()})
		times, err := s.RoundTrips(t.Context(), "lockbench:test:floors")
		if err != nil {
			t.Fatal(err)
		}
		if times.PingP50 == nil || times.PingP99 == nil || *times.PingP50 <= 0 || *times.PingP99 < *times.PingP50 {
			t.Errorf("%q: PING %v, %v", who, times.PingP50, times.PingP99)
		}
		if (times.ScriptP50 != nil) != scripts || (times.ScriptP99 != nil) != scripts {
			t.Errorf("%q: a script %v, %v", who, times.ScriptP50, times.ScriptP99)
		}
		if scripts && *times.ScriptP50 <= 0 {
			t.Errorf("a script took %d ns", *times.ScriptP50)
		}
	}
	s := open(t, Options{Address: p.Addr()})
	ended := p.Kill(t.Context())
	if _, err := s.RoundTrips(t.Context(), "lockbench:test:floors"); err == nil || ended != nil {
		t.Errorf("a dead server answered (%v)", ended)
	}
}
