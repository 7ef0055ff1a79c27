//go:build !redisonly

package all_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/strategies"
)

func init() {
	libraries["etcd"] = "go.etcd.io/etcd/client/v3/concurrency NewMutex (Go)"
	libraries["etcd:watch=next"] = ""
}

func TestModesOfPostgresAreNotMixed(t *testing.T) {
	if _, err := strategies.ParseVariants("postgres:mode=row+postgres"); err == nil ||
		!strings.Contains(err.Error(), "do not share a lock") {
		t.Errorf("the error is %v", err)
	}
}
