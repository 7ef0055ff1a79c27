// Package stores adds the stores other than Redis to lockbench: etcd, PostgreSQL and ZooKeeper. A program that locks
// only in Redis does not import it, and so does not compile their clients:
//
//	import _ "github.com/lockbench/lockbench/stores"
package stores

import (
	_ "github.com/lockbench/lockbench/internal/store/etcd"
	_ "github.com/lockbench/lockbench/internal/store/postgres"
	_ "github.com/lockbench/lockbench/internal/store/zookeeper"
)
