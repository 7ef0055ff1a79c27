//go:build !redisonly

package all_test

func init() {
	libraries["etcd"] = "go.etcd.io/etcd/client/v3/concurrency NewMutex (Go)"
	libraries["etcd:watch=next"] = ""
}
