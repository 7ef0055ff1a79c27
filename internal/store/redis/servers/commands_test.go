package servers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/strategies"
)

// A server survives being asked for every command, and allows an admin all of them. Of a
// command that is not whole Redis 7.0 dies.
func TestAskingForRightsHarmsNoServer(t *testing.T) {
	admin := open(t, Options{Address: "redis://" + process(t).Addr()}).nodes[0].observer
	var commands [][]string
	for command, rest := range arguments {
		words := append([]string{command, "key"}, strings.Fields(rest)...)
		commands = append(commands, words)
		// Wrong of type or absent is well, but not of a wrong number of words.
		args := make([]any, len(words))
		for i, word := range words {
			args[i] = word
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil &&
			strings.Contains(err.Error(), "wrong number of arguments") {
			t.Errorf("%v is not whole", words)
		}
	}
	question, err := json.Marshal(commands)
	must(t, err)
	may, err := allowed.Run(t.Context(), admin, nil, string(question)).Int64Slice()
	if err != nil || len(may) != len(commands) {
		t.Fatalf("%v, %v", may, err)
	}
	for i, allowed := range may {
		if allowed != 1 {
			t.Errorf("an admin may not %v", commands[i])
		}
	}
}

func TestLackingTellsKeysFromCommands(t *testing.T) {
	rights := strategies.Rights{Channels: []string{"x:{key}"}}
	for _, test := range []struct {
		rules string
		may   []int64
		want  string
	}{
		{"~a* +get,~a* +set", []int64{1, 0}, "+set"},
		{"~a* +get,~a* +set", []int64{0, 0}, "~a*"},
		{"~a* +get,~b* +get", []int64{1, 0}, "~b*"},
		{"~a* +get,+publish", []int64{1, 0}, "&x:lockbench:* +publish"},
		{"~a* +get,+publish", []int64{1, 1}, ""},
	} {
		lacking := lackingOf(rights, "lockbench:", strings.Split(test.rules, ","), test.may)
		if got := strings.Join(lacking, ", "); got != test.want {
			t.Errorf("%s with %v lacks %q, want %q", test.rules, test.may, got, test.want)
		}
	}
}

func TestCommandsInTheProtocol(t *testing.T) {
	// no part of an acquisition
	for _, greeting := range []string{"HELLO", "AUTH", "CLIENT", "SELECT", "PING", "READONLY", "CLUSTER", "COMMAND"} {
		for _, word := range []string{greeting, strings.ToLower(greeting)} {
			text := fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$1\r\n3\r\n*2\r\n$5\r\nsetnx\r\n$1\r\nk\r\n", len(word), word)
			if got := new(Server).Commands([]byte(text)); !slices.Equal(got, []string{"SETNX"}) {
				t.Errorf("%q has %v", text, got)
			}
		}
	}
	for text, want := range map[string][]string{
		"":                               nil,
		"*2\r\n$3\r\nget\r\n$1\r\nk\r\n": {"GET"},
		"*2\r\n$4\r\nECHO\r\n$3\r\na":    {"ECHO"},
		"*2\r\n$4\r\nECHO\r\n$99\r\n\r":  {"ECHO"},
		"*1\r\n$4\r\nMULT\r\n*1\r\n$4\r\nEXEC\r\n": {"MULT", "EXEC"},
		"rest of a value\r\n*2\r\n$3\r\nGET\r\n":   nil,
		"*2\r\n$7\r\nEVALSHA\r\n$2\r\naa\r\n":      {"EVALSHA aa"},
		"*x\r\n":                                   nil, "*": nil, "*99999999999999\r\n": nil,
	} {
		if got := new(Server).Commands([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q has %v, want %v", text, got, want)
		}
	}
}
