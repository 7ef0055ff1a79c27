package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// measuring lists the commands with which lockbench measures, and the consequence if the user lacks the right to these
// commands.
var measuring = []struct {
	commands []string
	costs    string
	baseline bool
}{
	{[]string{"info"}, "CPU time, commands, traffic and memory of the server are not known", false},
	{[]string{"config|get"}, "I/O threads, durability and, before Redis 7, the connection limit are not known", false},
	{[]string{"client|list"}, "subscriptions and leftover connections are not known", false},
	{[]string{"scan"}, "leftover keys are not known", false},
	{[]string{"del"}, "leftover keys are not deleted", false},
	{[]string{"pubsub|channels", "pubsub|shardchannels"}, "leftover channels are not known", false},
	{[]string{"script|load", "evalsha", "get"}, "the time of the shortest script is not known", true},
}

// faulting maps each fault to the commands that inject it into a user's servers.
var faulting = map[string][]string{
	workloads.ClientPause:     {"client|pause"},
	workloads.ScriptFlush:     {"script|flush"},
	workloads.KillSubscribers: {"client|list", "client|kill"},
	workloads.NodeExpireEarly: {"scan", "pttl", "del"},
	workloads.NodeDrift:       {"scan", "eval", "pttl", "pexpire"},
}

// MeasuringRights returns the rights that lockbench itself needs to show all figures, as rules of ACL SETUSER.
func MeasuringRights() (rules []string) {
	for _, m := range measuring {
		for _, command := range m.commands {
			rules = append(rules, "+"+command)
		}
	}
	return rules
}

// ClusterRights returns the additional rights that lockbench needs in a cluster.
func ClusterRights() []string { return []string{"+cluster|info", "+exists"} }

// Needs implements store.Examiner. It returns the requirements of lockbench itself.
func (s *Server) Needs(uses store.Uses) []store.Need {
	need := func(by, costs string, commands ...string) store.Need {
		return store.Need{By: by, Costs: costs, Rights: strategies.Rights{Keys: []string{"{key}"}, Commands: commands}}
	}
	connecting := strategies.Connecting()
	if s.nodes[0].options.DB != 0 {
		connecting = append(connecting, strategies.Selecting)
	}
	if s.topology.Kind == Clustered {
		connecting = append(append(connecting, strategies.ConnectingCluster()...), "exists")
	}
	all := []store.Need{need("lockbench", "", connecting...)}
	if uses.Generators {
		all = append(all, need("--generators", "", "set", "getrange", "pexpire", "time", "del"))
	}
	if uses.Counter {
		all = append(all, need("--work counter", "", "get", "set"))
	}
	if uses.Fenced {
		all = append(all, need("--fence", "", "get", "set", "eval", "evalsha"))
	}
	for _, fault := range uses.Faults {
		if commands := faulting[fault.Name]; commands != nil {
			all = append(all, need("--fault "+fault.Name, "", commands...))
		}
	}
	for _, m := range measuring {
		if uses.Baselines || !m.baseline {
			all = append(all, need("lockbench", m.costs, m.commands...))
		}
	}
	return all
}

// Grant returns the ACL command that gives the user the rights in rules.
func (s *Server) Grant(rules []string) string {
	user := s.nodes[0].options.Username
	if user == "" {
		user = "default"
	}
	return "ACL SETUSER " + user + " " + strings.Join(rules, " ")
}

// questions are commands that test a right. Redis checks the right to a command before it checks the arguments. So most
// of these commands can change nothing: they have an invalid argument, or name a KEY that does not exist. Only the
// commands in making create the KEY.
var questions = append([]string{
	"ping", "time", "command", "select none", "wait none none", "info server", "config|get maxclients", "scan none",
	"client|setname \x01", "client|list none", "client|id", "client|tracking off", "client|unblock none",
	"client|kill none", "client|pause none", "cluster|slots", "cluster|info",
	"pubsub|channels none", "pubsub|shardchannels none", "pubsub|shardnumsub",
	"script|load (", "script|flush none", "eval ( 0", "evalsha none 0", "publish CHANNEL none", "spublish CHANNEL none",

	"get KEY", "mget KEY", "getrange KEY 0 0", "exists KEY", "pttl KEY", "hexists KEY none", "lindex KEY 0",
	"lpos KEY none", "lrange KEY 0 0", "zrange KEY 0 0", "zscore KEY none",

	"del KEY", "pexpire KEY 1", "pexpireat KEY 1", "lpop KEY", "lrem KEY 0 none", "rpushx KEY none", "srem KEY none",
	"zrem KEY none", "zremrangebyscore KEY none none", "blpop KEY none", "set KEY none none", "mset KEY none KEY",
	"msetnx KEY none KEY", "hincrby KEY none none", "incrby KEY none", "zadd KEY none none", "zincrby KEY none none",
}, making...)

var making = []string{
	"setnx KEY none", "append KEY none", "incr KEY", "decr KEY", "rpush KEY none", "lpush KEY none", "sadd KEY none",
}

// hearing are the commands of subscribers, which need a separate connection because their replies have another form.
var hearing = []string{"subscribe", "unsubscribe", "ssubscribe", "sunsubscribe"}

// Missing implements store.Examiner. It tests the rights on every primary. It does not test commands that are neither
// in questions nor in hearing. It does not test the rights to a name without {key} either, because the name may belong
// to another program.
func (s *Server) Missing(
	ctx context.Context, rights strategies.Rights, prefix, key string,
) (missing store.Missing, err error) {
	if s.topology.Kind == Clustered {
		rights.Commands = slices.Concat(rights.Commands, rights.Cluster)
	}
	others := func(pattern string) bool { return !strings.Contains(pattern, "{key}") }
	rights.Keys = slices.DeleteFunc(slices.Clone(rights.Keys), others)
	rights.Channels = slices.DeleteFunc(slices.Clone(rights.Channels), others)
	var mu sync.Mutex
	var made []string
	err = s.onEveryNode(ctx, s.primaries(), func(ctx context.Context, n *node) error {
		i := inquiry{Rights: rights, prefix: prefix, key: key}
		err := i.ask(ctx, n)
		if err == nil {
			err = i.listen(ctx, n)
		}
		mu.Lock()
		defer mu.Unlock()
		missing.Add(i.missing)
		made = append(made, i.made...)
		return err
	})
	if len(made) > 0 {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), contactTimeout)
		defer cancel()
		if left := s.Remove(cleaning, made); !refused(left) { // measuring has DEL
			err = errors.Join(err, left)
		}
	}
	return missing, err
}

// inquiry tests the rights that a strategy needs on one node, and collects the missing rights.
type inquiry struct {
	strategies.Rights
	prefix, key string

	missing store.Missing
	made    []string // keys that the commands may have created
}

// named returns a name that matches the pattern.
func (i *inquiry) named(pattern string) string {
	return strings.NewReplacer("{key}", i.prefix+i.key, "*", "", "?", "0").Replace(pattern)
}

// ask sends the questions about the required commands in one pipeline and evaluates the replies.
func (i *inquiry) ask(ctx context.Context, n *node) error {
	pipe := n.observer.Pipeline()
	var answers []func() error
	for _, line := range questions {
		words := strings.Fields(line)
		if !slices.Contains(i.Commands, words[0]) {
			continue
		}
		patterns := []string{""}
		if slices.Contains(words, "KEY") {
			patterns = i.Keys
		} else if slices.Contains(words, "CHANNEL") {
			patterns = i.Channels
		}
		for _, pattern := range patterns {
			var args []any
			for _, word := range append(strings.Split(words[0], "|"), words[1:]...) {
				if word == "KEY" || word == "CHANNEL" {
					word = i.named(pattern)
				}
				args = append(args, word)
			}
			reply := pipe.Do(ctx, args...)
			answers = append(answers, func() error { return i.answered(n, words[0], pattern, reply.Err()) })
			if slices.Contains(making, line) {
				i.made = append(i.made, i.named(pattern))
			}
		}
	}
	if len(answers) > 0 {
		_, _ = pipe.Exec(ctx) // each reply has its error
	}
	for _, answer := range answers {
		if err := answer(); err != nil {
			return err
		}
	}
	return nil
}

// listen tests, on each channel, the rights to the required commands of subscribers.
func (i *inquiry) listen(ctx context.Context, n *node) error {
	for _, command := range hearing {
		for _, pattern := range i.Channels {
			if !slices.Contains(i.Commands, command) {
				continue
			}
			if err := i.answered(n, command, pattern, n.hear(ctx, command, i.named(pattern))); err != nil {
				return err
			}
		}
	}
	return nil
}

// answered evaluates err, the error reply to a command on a name that matches the pattern. It returns an error if the
// server did not reply.
func (i *inquiry) answered(n *node, command, pattern string, err error) error {
	names := func(sign string) string { return sign + strings.ReplaceAll(pattern, "{key}", i.prefix+"*") }
	right := ""
	switch code := Refused(err); {
	case code == unknown && slices.Contains(i.Cluster, command): // of sharded channels, which are optional
		return nil
	case code == unknown:
		i.missing.Add(store.Missing{Commands: []string{strings.ToUpper(strings.ReplaceAll(command, "|", " "))}})
		return nil
	case code != noPermission && !refused(err):
		return unreachable("test the rights on", n, err)
	case code != noPermission:
		return nil
	case strings.Contains(err.Error(), "' command"):
		right = "+" + command
	case strings.Contains(err.Error(), "channel"):
		right = names("&")
	default:
		right = names("~")
	}
	i.missing.Add(store.Missing{Rights: []string{right}})
	return nil
}

// hear sends a subscriber's command, such as SUBSCRIBE, for a channel. It uses a separate connection and returns the
// error of the reply.
func (n *node) hear(ctx context.Context, command, channel string) error {
	session := n.observer.Subscribe(ctx)
	defer func() { _ = session.Close() }()
	send := map[string]func(context.Context, ...string) error{
		"subscribe": session.Subscribe, "unsubscribe": session.Unsubscribe,
		"ssubscribe": session.SSubscribe, "sunsubscribe": session.SUnsubscribe,
	}[command]
	if err := send(ctx, channel); err != nil {
		return err
	}
	_, err := session.ReceiveTimeout(ctx, readTimeout)
	return err
}

// Symptoms implements store.Examiner. It examines the memory and the snapshots of the first node.
func (s *Server) Symptoms(ctx context.Context) []results.Symptom {
	n := s.nodes[0]
	memory := results.Symptom{Name: "memory", State: results.Well}
	if fields, err := readInfo(ctx, n.observer, "memory"); err == nil && fields["used_memory"] != "" {
		const mb = 1 << 20
		most, policy := value(fields.Integer("maxmemory")), untrusted.Printable(fields["maxmemory_policy"])
		limit := "no maxmemory"
		if most > 0 {
			limit = fmt.Sprintf("a maxmemory of %.3g MB", float64(most)/mb)
		}
		used := float64(value(fields.Integer("used_memory"))) / mb
		memory.Says = []string{fmt.Sprintf("%.3g MB used, %s, %s", used, limit, policy)}
		if most > 0 && policy != "" && policy != "noeviction" {
			memory.State = results.Note
			memory.Next = []string{
				"if a lock is evicted, a second client can acquire it: keep locks on a server with noeviction",
			}
		}
	}
	snapshots := results.Symptom{Name: "snapshots", State: results.Well}
	if config, err := n.observer.ConfigGet(ctx, "save").Result(); err == nil {
		snapshots.Says = []string{"no snapshots are written"}
		if config["save"] != "" {
			snapshots.State = results.Note
			snapshots.Says = []string{"snapshots are written (save " + untrusted.Printable(config["save"]) + ")"}
			snapshots.Next = []string{"the fork for a snapshot may disturb a window: measure without snapshots, or as in " +
				"production, and report the setting"}
		}
	}
	return slices.DeleteFunc([]results.Symptom{memory, snapshots},
		func(s results.Symptom) bool { return len(s.Says) == 0 })
}
