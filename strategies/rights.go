package strategies

import (
	"slices"
	"strings"
)

// Rights are the rights that a strategy's Redis user needs, in the syntax of Redis ACLs, in addition to the rights that
// every connection needs (Connecting).
//
// In patterns {key} stands for the lock's key, including the prefix. Except for names that Redis itself defines, every
// pattern contains {key}, so that the user gets rights to locks only.
type Rights struct {
	Keys     []string
	Channels []string
	Commands []string // in lower case, including those that scripts call; subcommands have the form "client|id"
	Cluster  []string // additional commands that the strategy needs on a cluster
	Newer    []string // commands that the strategy uses if the server has them and the user may run them
}

// Declared reports whether r lists any rights. If a strategy on Redis lists none, the rights that it needs are not
// known.
func (r Rights) Declared() bool { return len(r.Keys)+len(r.Channels)+len(r.Commands) > 0 }

// Connecting returns the commands that every connection sends first. HELLO and AUTH need no right.
func Connecting() []string { return []string{"client|setname", "ping"} }

// Selecting is the additional command that connections to a database other than 0 send.
const Selecting = "select"

// ConnectingCluster returns the additional commands that a cluster client needs to find the node of a key.
func ConnectingCluster() []string { return []string{"cluster|slots", "command"} }

// Rules returns the rights as separate rules of ACL SETUSER, for locks whose keys begin with the prefix.
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

// matching returns pattern with {key} replaced by a pattern for all keys that begin with the prefix.
func matching(pattern, prefix string) string { return strings.ReplaceAll(pattern, "{key}", prefix+"*") }

// SetUser returns the command that creates a user with exactly these rights and those that every connection needs.
func (r Rights) SetUser(user, prefix string) string {
	rules := r.Rules(prefix)
	for _, command := range Connecting() {
		if rule := "+" + command; !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return "ACL SETUSER " + user + " reset on >PASSWORD " + strings.Join(rules, " ")
}
