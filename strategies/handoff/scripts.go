package handoff

import (
	_ "embed" // the scripts

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed grant.lua
	grantSource string
	//go:embed queue.lua
	queueSource string
	//go:embed free.lua
	freeSource string
	//go:embed release.lua
	releaseSource string
	//go:embed leave.lua
	leaveSource string
	//go:embed check.lua
	checkSource string
	//go:embed extend.lua
	extendSource string
	//go:embed echo.lua
	echoSource string

	queueScript   = newScript(grantSource + queueSource)
	freeScript    = newScript(freeSource)
	releaseScript = newScript(grantSource + releaseSource)
	leaveScript   = newScript(grantSource + leaveSource)
	checkScript   = newScript(grantSource + checkSource)
	extendScript  = newScript(extendSource)
	echoScript    = newScript(echoSource)
)

// script is a Lua script. The source is sent by EVAL if the server does not know the hash.
type script struct{ hash, source string }

func newScript(source string) *script { return &script{redis.NewScript(source).Hash(), source} }
