// Package stores has lockbench lock in other stores than Redis: etcd, PostgreSQL,
// ZooKeeper. Who locks in Redis alone does without it and compiles none of their clients:
//
//	import _ "github.com/lockbench/lockbench/stores"
package stores

import (
	_ "github.com/lockbench/lockbench/internal/store/etcd"
	_ "github.com/lockbench/lockbench/internal/store/postgres"
	_ "github.com/lockbench/lockbench/internal/store/zookeeper"
)
