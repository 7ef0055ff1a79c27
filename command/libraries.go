package command

import (
	"runtime/debug"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/apps/claims"
)

// client is the Redis client of most strategies.
const client = "github.com/redis/go-redis/v9"

// libraries returns other people's libraries that the claims measure, and our own
// strategies' client, with their versions in this build.
func libraries(all []claims.Claim) []string {
	var named []string
	for _, claim := range all {
		for _, run := range claim.Runs {
			plan, _ := planOf(strings.Fields(run.Line)) // its errors are reported elsewhere
			for _, v := range plan.Strategies {
				if module := v.Info().Library; module != "" && !slices.Contains(named, module) {
					named = append(named, module)
				}
			}
		}
	}
	if len(named) == 0 {
		return nil
	}
	return versions(append(named, client))
}

// versions returns modules with their versions, if this build knows them.
func versions(modules []string) []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var all []string
	for _, module := range info.Deps { // sorted by path
		if slices.Contains(modules, module.Path) {
			all = append(all, module.Path+" "+module.Version)
		}
	}
	return all
}
