package servers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestCommandsInTheProtocol(t *testing.T) {
	// Commands must omit greetings, which set up a connection and are not part of an acquisition.
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
