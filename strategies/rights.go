package strategies

import (
	"slices"
	"strings"
)

// Rights are what a strategy's user needs on a server, in the words of Redis's ACL, besides
// what every connection needs (Connecting).
//
// In patterns {key} stands for the lock's key, prefix included. Every pattern contains it,
// except for names that Redis itself gives, so that a user has rights to locks only.
type Rights struct {
	Keys     []string
	Channels []string
	Commands []string // in lower case, with those that scripts call; a subcommand as "client|id"
	Cluster  []string // commands that it also needs on a cluster
	Newer    []string // commands that it uses where a server has them and the user may run them
}

// Declared says whether there are any rights: a strategy on Redis that has none has not said
// what it needs.
func (r Rights) Declared() bool { return len(r.Keys)+len(r.Channels)+len(r.Commands) > 0 }

// Connecting returns the commands that every connection begins with. HELLO and AUTH need no
// right.
func Connecting() []string { return []string{"client|setname", "ping"} }

// Selecting is the command with which connections to a database other than 0 also begin.
const Selecting = "select"

// ConnectingCluster returns the commands that a cluster's client also needs, to learn where
// keys are.
func ConnectingCluster() []string { return []string{"cluster|slots", "command"} }

// Rules returns the rights as rules of ACL SETUSER, one by one, for locks whose keys begin
// with that prefix.
func (r Rights) Rules(prefix string) []string {
	var rules []string
	for _, key := range r.Keys {
		rules = append(rules, "~"+matching(key, prefix))
	}
	for _, channel := range r.Channels {
		rules = append(rules, "&"+matching(channel, prefix))
	}
	for _, command := range r.Commands {
		rules = append(rules, "+"+command)
	}
	return rules
}

// matching returns the pattern for all keys of a prefix.
func matching(pattern, prefix string) string { return strings.ReplaceAll(pattern, "{key}", prefix+"*") }

// SetUser returns the command that makes a user with these rights, with those that every
// connection needs, and with no others.
func (r Rights) SetUser(user, prefix string) string {
	rules := r.Rules(prefix)
	for _, command := range Connecting() {
		if rule := "+" + command; !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return "ACL SETUSER " + user + " reset on >PASSWORD " + strings.Join(rules, " ")
}
