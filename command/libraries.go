package command

import (
	"runtime/debug"
	"slices"

	"github.com/lockbench/lockbench/internal/apps/claims"
)

// client is the Redis client of most strategies.
const client = "github.com/redis/go-redis/v9"

// libraries are other people's that the claims measure, and the client of our own
// strategies, as they stand in this build.
func libraries(all []claims.Claim) []string {
	var named []string
	for _, claim := range all {
		for _, run := range claim.Runs {
			plan, _ := planOf(claim.Words(run)) // its errors have been named
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

// versions are modules with their versions, as far as this build knows them.
func versions(modules []string) []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var all []string
	for _, module := range info.Deps { // by path
		if slices.Contains(modules, module.Path) {
			all = append(all, module.Path+" "+module.Version)
		}
	}
	return all
}
