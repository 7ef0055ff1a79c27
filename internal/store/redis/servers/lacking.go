package servers

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// allowed is a script that asks which commands the user may run in scripts; it needs Redis 7. The
// commands must be complete: without its arguments, Redis reads beyond the end of a command and
// crashes.
var allowed = redis.NewScript(`
local may = {}
for i, command in ipairs(cjson.decode(ARGV[1])) do
  local ok, allowed = pcall(redis.acl_check_cmd, unpack(command))
  may[i] = (not ok or allowed) and 1 or 0
end
return may`)

// arguments completes the commands of the locks' scripts after the key. Other commands are not
// tested.
var arguments = map[string]string{
	"get": "", "set": "0", "setnx": "0", "del": "", "exists": "", "pexpire": "0", "pttl": "",
	"incr": "", "decr": "", "incrby": "0", "hexists": "0", "hincrby": "0 0",
	"lindex": "0", "linsert": "BEFORE 0 0", "lpop": "", "lrange": "0 0", "lrem": "0 0", "lset": "0 0", "ltrim": "0 0",
	"rpush": "0",
	"sadd":  "0", "srem": "0", "xadd": "* 0 0", "xrevrange": "+ -",
	"zadd": "0 0", "zincrby": "0 0", "zrange": "0 0", "zrem": "0", "zscore": "0", "zremrangebyscore": "0 0",
}

// Lacking returns the rights to keys, channels and scripts' commands that the user does not have.
func (i instance) Lacking(ctx context.Context, rights strategies.Rights, prefix, key, refusal string) []string {
	concrete := strings.NewReplacer("{key}", key, "*", "", "?", "0")
	var commands [][]string
	var rules []string // one for each of the commands
	ask := func(rule string, words ...string) {
		commands, rules = append(commands, words), append(rules, rule)
	}
	for _, pattern := range rights.Keys {
		key := concrete.Replace(pattern)
		rule := strategies.Rights{Keys: []string{pattern}}.Rules(prefix)[0]
		for _, command := range rights.Commands {
			if rest, known := arguments[command]; known {
				ask(rule+" +"+command, append([]string{command, key}, strings.Fields(rest)...)...)
			}
		}
	}
	for _, pattern := range rights.Channels {
		ask("+publish", "publish", concrete.Replace(pattern), "0")
	}
	question, err := json.Marshal(commands)
	if err != nil {
		return nil
	}
	may, err := allowed.Run(ctx, i[0].Client, nil, string(question)).Int64Slice()
	if err != nil || len(may) != len(rules) {
		return nil
	}
	if strings.Contains(refusal, "run this command") { // the refusal is about a command, not a channel
		rights.Channels = nil
	}
	return lackingOf(rights, prefix, rules, may)
}

// lackingOf distinguishes keys from commands: if no command may use a key, the key is missing, not
// all the commands.
func lackingOf(rights strategies.Rights, prefix string, rules []string, may []int64) []string {
	usable := map[string]bool{}
	for i, rule := range rules {
		key, _, _ := strings.Cut(rule, " ")
		usable[key] = usable[key] || may[i] == 1
	}
	var lacking []string
	said := map[string]bool{}
	for i, rule := range rules {
		key, command, of := strings.Cut(rule, " ")
		switch {
		case may[i] == 1:
			continue
		case !of: // either the command or the channel may be missing
			for _, channel := range (strategies.Rights{Channels: rights.Channels}).Rules(prefix) {
				command += channel + " "
			}
			command += rule
		case !usable[key]:
			command = key
		}
		if !said[command] {
			said[command] = true
			lacking = append(lacking, strings.TrimSpace(command))
		}
	}
	return lacking
}

// MeasuringRights are the rights that lockbench itself needs to show all figures, as rules of ACL
// SETUSER: for counters, limits, connections, subscriptions, leftovers and baselines. Without one
// of them a figure is unknown.
func MeasuringRights() []string {
	return []string{
		"+info", "+config|get", "+client|list", "+scan", "+unlink",
		"+pubsub|channels", "+pubsub|shardchannels", "+script|load", "+evalsha", "+get",
	}
}

// ClusterRights are further rights that it needs in a cluster.
func ClusterRights() []string { return []string{"+cluster|info", "+cluster|myid", "+exists"} }
