package goredis

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// Software is the name and the versions that a server reports. Servers other than Redis, such as Valkey, speak Redis's
// protocol too.
type Software struct {
	Name    string // redis, valkey, redict, keydb, dragonfly; "" if not known
	Version string // in the software's own numbering
	Redis   string // the version of Redis with which the server is compatible
	Mode    string // standalone, cluster, sentinel
}

// SoftwareOf reads the fields of INFO server. It reads missing fields from the reply to HELLO.
func SoftwareOf(info, greeted map[string]string) Software {
	s := Software{
		Name:  cmp.Or(info["server_name"], greeted["server"]),
		Redis: cmp.Or(info["redis_version"], greeted["version"]),
		Mode:  strings.TrimSpace(cmp.Or(info["server_mode"], info["redis_mode"], info["redict_mode"], greeted["mode"])),
	}
	s.Version = s.Redis
	for _, name := range []string{"valkey", "redict", "dragonfly"} {
		if own := info[name+"_version"]; own != "" {
			s.Name, s.Version = name, strings.TrimPrefix(own, "df-v")
		}
	}
	switch {
	case strings.HasPrefix(filepath.Base(info["executable"]), "keydb"):
		s.Name = "keydb"
	case s.Name == "" && s.Version != "":
		s.Name = "redis"
	}
	return s
}

// Greeting returns the fields of a reply to HELLO, which is a list in RESP2 and a map in RESP3.
func Greeting(reply any) map[string]string {
	fields := map[string]string{}
	add := func(name, value any) {
		key, _ := name.(string)
		switch v := value.(type) {
		case string:
			fields[key] = v
		case int64:
			fields[key] = strconv.FormatInt(v, 10)
		}
	}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			add(name, value)
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			add(reply[i], reply[i+1])
		}
	}
	return fields
}

// AskSoftware queries a server for its software, by INFO and HELLO. It fails only if the server refuses both.
func AskSoftware(ctx context.Context, client redis.UniversalClient) (Software, error) {
	info, refused := client.InfoMap(ctx, "server").Result()
	hello, err := client.Do(ctx, "HELLO").Result()
	if err != nil && refused != nil {
		return Software{}, errors.Join(refused, err)
	}
	return SoftwareOf(info["Server"], Greeting(hello)), nil
}

// titles maps the name that a server reports to the name that messages use.
var titles = map[string]string{
	"redis": "Redis", "valkey": "Valkey", "redict": "Redict", "keydb": "KeyDB", "dragonfly": "Dragonfly",
}

// String returns the software and its version, such as "Valkey 9.1.2".
func (s Software) String() string { return cmp.Or(titles[s.Name], s.Name) + " " + s.Version }

// TooOld returns the text of an error if the software is older than a lock needs: "needs Redis 7.0 (sharded
// channels), this is 6.2.14". It returns "" if the software is new enough or its version is not known.
func (s Software) TooOld(since strategies.Since) string {
	has, needed := s.Redis, since.Redis
	if s.Name == "valkey" && since.Valkey != "" {
		has, needed = s.Version, since.Valkey
	}
	if has == "" || slices.Compare(numbers(has), numbers(needed)) >= 0 {
		return ""
	}
	old := "needs " + since.String() + ", this is " + strings.TrimPrefix(s.String(), "Redis ")
	if since.Instead != "" {
		old += "; set " + since.Instead + " there"
	}
	return old
}

// numbers returns the parts of a version such as 7.0.15 as integers, by which versions can be compared. A part that is
// not a number is 0.
func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, _ := strconv.Atoi(part)
		all = append(all, n)
	}
	return all
}

// Unsupported is an error that matches errors.ErrUnsupported. Its value is the message.
type Unsupported string

func (u Unsupported) Error() string { return string(u) }

// Is makes errors.Is(u, errors.ErrUnsupported) true.
func (Unsupported) Is(target error) bool { return target == errors.ErrUnsupported }

// TooOld returns an Unsupported if err reports an unknown command or option and the server is older than the Redis that
// the lock needs. In all other cases it returns err. name is the name of the lock.
func TooOld(ctx context.Context, client redis.UniversalClient, err error, name string, since strategies.Since) error {
	if !redis.HasErrorPrefix(err, "unknown command") && !redis.HasErrorPrefix(err, "syntax error") {
		return err
	}
	found, unknown := AskSoftware(ctx, client)
	if old := found.TooOld(since); unknown == nil && old != "" {
		return Unsupported(name + " " + old)
	}
	return err
}
