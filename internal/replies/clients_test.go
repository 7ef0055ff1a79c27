package replies

import (
	"maps"
	"slices"
	"testing"
)

func TestClients(t *testing.T) {
	t.Parallel()
	const list = "id=3 addr=127.0.0.1:52034 name= age=7 cmd=client|list\nid=4 addr=/tmp/redis.sock:0 " +
		"name=lockbench:a=b cmd=get\n\n"
	want := []map[string]string{
		{"id": "3", "addr": "127.0.0.1:52034", "name": "", "age": "7", "cmd": "client|list"},
		{"id": "4", "addr": "/tmp/redis.sock:0", "name": "lockbench:a=b", "cmd": "get"},
	}
	got := slices.Collect(Clients(list))
	if !slices.EqualFunc(got, want, maps.Equal) {
		t.Errorf("clients %v, want %v", got, want)
	}
	for client := range Clients(list) { // a loop may end before the list does
		if client["id"] != "3" {
			t.Errorf("the first client is %v", client)
		}
		break
	}
}
