package internal_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/replies"
)

const infoSample = "# Clients\r\nconnected_clients:3\r\nmaxclients:10000\r\n\r\n# " +
	"CPU\r\nused_cpu_sys:0.250000\r\nused_cpu_user:1.500000\r\n" +
	"# Commandstats\r\ncmdstat_get:calls=21,usec=175,usec_per_call=8.33,rejected_calls=0,failed_calls=0\r\n" +
	"cmdstat_client|setname:calls=2,usec=3\r\ncmdstat_broken:usec=3\r\nnonsense\r\nused_memory:many\r\n"

func TestParseInfo(t *testing.T) {
	fields := replies.ParseInfo(infoSample)
	if n := fields.Integer("maxclients"); n == nil || *n != 10000 {
		t.Errorf("maxclients = %v", n)
	}
	if n := fields.Integer("used_memory"); n != nil {
		t.Errorf("used_memory = %d, want nil for what is no number", *n)
	}
	if s := fields.Seconds("used_cpu_user", "used_cpu_sys"); s == nil || *s != 1.75 {
		t.Errorf("CPU = %v", s)
	}
	if s := fields.Seconds("used_cpu_user", "used_cpu_user_main_thread"); s != nil {
		t.Errorf("a sum with a missing part = %v, want nil", *s)
	}
	if got, want := fields.Calls(), (map[string]int64{"get": 21, "client|setname": 2}); !maps.Equal(got, want) {
		t.Errorf("commands = %v, want %v", got, want)
	}
	if replies.ParseInfo("# Commandstats\r\n").Calls() != nil {
		t.Error("no commands are nil, not empty")
	}
}

func FuzzParseInfo(f *testing.F) {
	f.Add(infoSample)
	f.Add("a:b:c\n:\n::\ncmdstat_:calls=\ncmdstat_x:calls=9999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		fields := replies.ParseInfo(text)
		for field := range fields {
			fields.Integer(field)
			fields.Seconds(field)
			if field == "" || field[0] == '#' {
				t.Errorf("field %q", field)
			}
		}
		for command, calls := range fields.Calls() {
			if n := fields.Integer("cmdstat_" + command); n != nil {
				t.Errorf("%s: %d calls of a line that is a number: %d", command, calls, *n)
			}
		}
	})
}

func TestClients(t *testing.T) {
	t.Parallel()
	const list = "id=3 addr=127.0.0.1:52034 name= age=7 cmd=client|list\nid=4 addr=/tmp/redis.sock:0 " +
		"name=lockbench:a=b cmd=get\n\n"
	want := []map[string]string{
		{"id": "3", "addr": "127.0.0.1:52034", "name": "", "age": "7", "cmd": "client|list"},
		{"id": "4", "addr": "/tmp/redis.sock:0", "name": "lockbench:a=b", "cmd": "get"},
	}
	got := slices.Collect(replies.Clients(list))
	if !slices.EqualFunc(got, want, maps.Equal) {
		t.Errorf("clients %v, want %v", got, want)
	}
	for client := range replies.Clients(list) { // a loop may end before the list does
		if client["id"] != "3" {
			t.Errorf("the first client is %v", client)
		}
		break
	}
}
