package strategies

import (
	"regexp"
	"slices"
	"strings"
)

// Rights are what a strategy's user needs on a server, in the words of Redis's ACL. Those
// of every connection, Connecting, come on top.
//
// In patterns {key} stands for the lock's key, prefix included. Every pattern but those
// of names that Redis itself gives holds it, so that a user needs no right to what is
// not a lock's.
type Rights struct {
	Keys     []string
	Channels []string
	Commands []string // those that scripts call too, in lower case; a subcommand as "client|id"
	// OneOf are commands of which a server has one, which its user needs too. Rules and SetUser
	// have none of them: a server refuses the rule of a command that it does not know.
	OneOf   []string
	Cluster []string // commands that it takes on a cluster besides
}

// Connecting are the commands that every connection begins with. HELLO and AUTH are open
// to everybody.
func Connecting() []string { return []string{"client|setname", "ping"} }

// ConnectingCluster are those that a cluster's client takes besides, to learn where keys
// are.
func ConnectingCluster() []string { return []string{"cluster|slots", "command"} }

// Rules are the rights as rules of ACL SETUSER, one by one, for locks whose keys begin
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

// refusedCommand finds the command in a refusal: "… to run the 'client|id' command".
var refusedCommand = regexp.MustCompile(`'([a-zA-Z|]+)' command`)

// Missing are the rules that a refusal, NOPERM in Redis's words, asks for.
func (r Rights) Missing(refusal, prefix string) []string {
	if found := refusedCommand.FindStringSubmatch(refusal); found != nil {
		return []string{"+" + strings.ToLower(found[1])}
	}
	sign := ""
	switch {
	case strings.Contains(refusal, "channel"):
		sign = "&"
	case strings.Contains(refusal, "key"):
		sign = "~"
	}
	return slices.DeleteFunc(r.Rules(prefix), func(rule string) bool { return sign == "" || !strings.HasPrefix(rule, sign) })
}

// matching is the pattern for all keys of a prefix.
func matching(pattern, prefix string) string { return strings.ReplaceAll(pattern, "{key}", prefix+"*") }

// SetUser is the command that makes a user with these rights, what every connection
// needs included, and no others.
func (r Rights) SetUser(user, prefix string) string {
	rules := r.Rules(prefix)
	for _, command := range Connecting() {
		if rule := "+" + command; !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return "ACL SETUSER " + user + " reset on >PASSWORD " + strings.Join(rules, " ")
}
