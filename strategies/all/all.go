// Package all registers every strategy of this module. Import it only for this effect:
//
//	import _ "github.com/lockbench/lockbench/strategies/all"
package all

import _ "github.com/lockbench/lockbench/strategies/all/goredis"
