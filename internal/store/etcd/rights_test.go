package etcd

import (
	"errors"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/etcdtest"
)

// Who may see the keys that begin with lockbench alone finds what is left among them.
func TestLeftoversOfAUserWithFewRights(t *testing.T) {
	theirs := etcdtest.Start(t, 1)
	outside := theirs.Client(t)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(outside.UserAdd(t.Context(), "root", "secret"))
	must(outside.UserGrantRole(t.Context(), "root", "root"))
	must(outside.UserAdd(t.Context(), "poor", "secret"))
	must(outside.RoleAdd(t.Context(), "ours"))
	must(outside.RoleGrantPermission(t.Context(), "ours", "lockbench", clientv3.GetPrefixRangeEnd("lockbench"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(outside.UserGrantRole(t.Context(), "poor", "ours"))
	must(outside.AuthEnable(t.Context()))
	at := theirs.Endpoints[0]
	server := opened(t, store.Options{Address: "etcd://poor:secret@" + at})
	const key = "lockbench:{mine:1:0}/1"
	must(server.client.Put(t.Context(), key, ""))
	left, err := server.Leftovers(t.Context(), "{mine:1:", "")
	if err != nil || !slices.Equal(left.Keys, []string{key}) {
		t.Errorf("%v, %v", left.Keys, err)
	}
	// A wrong password is a fault of what was asked for, as with the other stores.
	if _, err := (Store{}).Open(t.Context(), "mine", store.Options{Address: "etcd://poor:wrong@" + at}); !errors.Is(err, store.ErrConfig) {
		t.Error(err)
	}
}
