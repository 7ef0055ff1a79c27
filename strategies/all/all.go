// Package all registers every strategy of this module. Import it for that alone:
//
//	import _ "github.com/lockbench/lockbench/strategies/all"
package all

import _ "github.com/lockbench/lockbench/strategies/all/goredis"
