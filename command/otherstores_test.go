package command_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
)

// What cannot be had of stores beside Redis is refused, not passed over.
func TestWhatOtherStoresCannotDo(t *testing.T) {
	for arguments, want := range map[string]string{
		"-s etcd -u postgres://127.0.0.1:1/postgres":                          "an address of postgres is given, and no strategy",
		"-s spin -u zk://127.0.0.1:1":                                         "an address of zookeeper is given, and no strategy",
		"-s etcd --pin":                                                       "--pin cannot be had with etcd",
		"-s spin,postgres --pin":                                              "--pin is for one store, and there are redis, postgres",
		"-s postgres,zookeeper --pin":                                         "--pin is for one store, and there are postgres, zookeeper",
		"-s etcd -u etcd://127.0.0.1:1 --durability fsync":                    "--durability needs an etcd that lockbench starts",
		"-s postgres -u postgres://127.0.0.1:1/postgres --durability default": "--durability needs a PostgreSQL that lockbench starts",
		"-s zookeeper -u zk://127.0.0.1:1 --durability memory":                "--durability needs a ZooKeeper that lockbench starts",
	} {
		said, code := says(t, arguments+" --dry-run")
		if code != command.ExitConfig || !strings.Contains(said, want) {
			t.Errorf("%s: %d, %s", arguments, code, said)
		}
	}
	if said, code := says(t, "-s zookeeper --pin --dry-run"); code != command.ExitOK {
		t.Errorf("--pin with ZooKeeper alone: %d, %s", code, said)
	}
}

// What to do about an error of etcd's is said once, and not with Redis's addresses.
func TestTheNextStepIsEtcds(t *testing.T) {
	for address, want := range map[string]string{
		"etcds://" + etcdtest.Start(t, 1).Endpoints[0]: "etcd:// instead of etcds://",
		"etcd://127.0.0.1:1":                           "nothing listens there",
	} {
		said, code := says(t, "-s etcd -u "+address)
		if code != command.ExitUnreachable || strings.Count(said, want) != 1 || strings.Contains(said, "redis://") {
			t.Errorf("%s: %d, %s", address, code, said)
		}
	}
}

func says(t *testing.T, arguments string) (said string, code int) {
	t.Helper()
	var out, wrong strings.Builder
	code = command.Main(context.WithoutCancel(t.Context()), strings.Fields(arguments), strings.NewReader(""), &out, &wrong)
	return wrong.String(), code
}
