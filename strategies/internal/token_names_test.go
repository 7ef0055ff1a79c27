package internal_test

import (
	"regexp"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/token"
)

func TestNamesAreUnique(t *testing.T) {
	format := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[1-9][0-9]*$`)
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for _, names := range []*token.Names{token.NewNames(), token.NewNames()} {
		for range 4 {
			all.Go(func() {
				for range 200 {
					name := names.Next()
					mu.Lock()
					if seen[name] || !format.MatchString(name) {
						t.Errorf("%q is malformed or was used before", name)
					}
					seen[name] = true
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	if len(seen) != 2*4*200 {
		t.Errorf("%d distinct names", len(seen))
	}
}
