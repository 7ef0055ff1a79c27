package handoff

import (
	_ "embed" // the scripts
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed grant.lua
	grantSource string
	//go:embed beat.lua
	beatSource string
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string
	//go:embed extend.lua
	extendSource string
	//go:embed return.lua
	returnSource string
	//go:embed probe.lua
	probeSource string

	beatScript    = &script{redis.NewScript(beatSource), beatSource}
	acquireScript = newScript(acquireSource)
	releaseScript = newScript(releaseSource)
	extendScript  = newScript(extendSource)
	returnScript  = newScript(returnSource)
	probeScript   = newScript(probeSource)
)

// script is one that begins with grant.lua, or that of the heartbeat.
type script struct {
	*redis.Script
	source string
}

func newScript(source string) *script {
	source = grantSource + source
	return &script{redis.NewScript(source), source}
}

// unknown says that Redis does not know a script, as after SCRIPT FLUSH.
func unknown(err error) bool { return strings.HasPrefix(err.Error(), "NOSCRIPT") }

// load has Redis know it again.
func (h *home) load(s *script) { h.line.Put(nil, "SCRIPT", "LOAD", s.source) }

func scripts() []*script {
	return []*script{beatScript, acquireScript, releaseScript, extendScript, returnScript, probeScript}
}
