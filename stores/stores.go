// Package stores adds the stores other than Redis to lockbench: etcd, PostgreSQL and ZooKeeper. A program imports this
// package for its side effects. A program that locks only in Redis omits the import, and so does not compile the
// clients of the other stores:
//
//	import _ "github.com/lockbench/lockbench/stores"
package stores

import (
	_ "github.com/lockbench/lockbench/internal/store/etcd"
	_ "github.com/lockbench/lockbench/internal/store/postgres"
	_ "github.com/lockbench/lockbench/internal/store/zookeeper"
)
