package lockbench_test

import (
	"fmt"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// room is a group of packages with the same position in the order of imports. The same rules determine what they may
// import.
type room struct {
	name     string
	packages []string // patterns of path.Match, below the module
	// sees lists the rooms that this room may import in addition to itself. If it is nil, the room may import all earlier
	// rooms that are not hidden.
	sees []string
	// hidden, if not nil, lists the only rooms that may import this room.
	hidden []string
}

// house is the order of imports. A package may import only packages of earlier rooms or, if its room sets sees, of the
// rooms in sees. The first pattern that matches a package determines its room, so exact names come first.
var house = []room{
	{name: "helpers", packages: []string{
		"internal", "internal/words", "internal/layout", "internal/replies",
		"internal/pause", "internal/netfault", "internal/untrusted",
	}},
	{name: "workloads", packages: []string{"workloads"}},
	{
		name: "strategies", packages: []string{
			"strategies", "strategies/goredis", "strategies/gozk", "strategies/internal/background",
		}, sees: []string{},
	},
	{
		name: "suite", packages: []string{"strategies/locktest"},
		sees: []string{"helpers", "strategies"}, hidden: []string{"apps", "command"},
	},
	{
		name: "test kit", packages: []string{
			"internal/testkit/*", "strategies/locktest/*", "strategies/internal/trial",
		},
		sees: []string{
			"helpers", "workloads", "strategies", "suite", "locks", "results", "measure", "store", "engine", "launch",
			"containers", "stores",
		}, hidden: []string{},
	},
	{
		name: "programs", packages: []string{
			"cmd/lockbench", "internal/gate", "internal/gate/lock", "strategies/all", "strategies/all/goredis",
			"docker", "stores", "docs", "docs/man", "drivers/go",
			"examples/service",
		},
		sees: []string{
			"helpers", "workloads", "strategies", "locks", "results", "leaves", "measure", "store", "engine",
			"launch", "containers", "stores", "driver", "lockbench", "apps", "command",
		}, hidden: []string{},
	},
	{
		name: "locks", packages: []string{
			"strategies/*", "strategies/internal/*", "strategies/peers/*", "strategies/handoff/model",
		},
		sees: []string{"helpers", "strategies"}, hidden: []string{"session", "apps"},
	},
	{name: "results", packages: []string{"results"}, sees: []string{"helpers", "workloads", "strategies"}},
	{
		name: "leaves", packages: []string{"results/*"},
		sees: []string{"helpers", "workloads", "strategies", "results"}, hidden: []string{"apps", "command", "watch"},
	},
	{name: "measure", packages: []string{"internal/measure"}},
	{name: "store", packages: []string{"internal/store"}},
	{name: "engine", packages: []string{"internal/engine"}},
	{
		name: "launch", packages: []string{"internal/launch", "internal/launch/redisserver"}, sees: []string{"helpers"},
	},
	{
		name: "containers", packages: []string{"internal/launch/containers"}, sees: []string{"launch"},
		hidden: []string{},
	},
	{
		name: "stores", packages: []string{"internal/store/*", "internal/store/*/*"},
		sees: []string{"helpers", "workloads", "strategies", "results", "measure", "store", "launch"},
	},
	{
		name: "watch", packages: []string{"internal/watch"},
		sees: []string{"helpers", "workloads", "strategies", "results", "leaves"}, hidden: []string{"command"},
	},
	{name: "driver", packages: []string{"drivers", "internal/driver"}, hidden: []string{"apps", "command"}},
	{name: "session", packages: []string{"internal/session"}, hidden: []string{"lockbench"}},
	{name: "lockbench", packages: []string{""}},
	{name: "apps", packages: []string{"internal/apps/*"}},
	{name: "command", packages: []string{"command"}},
}

const modulePath = "github.com/lockbench/lockbench"

// roomOf returns the index of a package's room in house, or -1 if it has none.
func roomOf(pkg string) int {
	return slices.IndexFunc(house, func(r room) bool {
		return slices.ContainsFunc(r.packages, func(pattern string) bool {
			fits, err := path.Match(pattern, pkg)
			return err == nil && fits
		})
	})
}

// mayImport reports whether packages of one room, from, may import packages of another room, to.
func mayImport(from, to room) bool {
	if from.name == to.name || from.sees != nil {
		return from.name == to.name || slices.Contains(from.sees, to.name)
	}
	place := func(name string) int { return slices.IndexFunc(house, func(r room) bool { return r.name == name }) }
	return place(to.name) < place(from.name) && (to.hidden == nil || slices.Contains(to.hidden, from.name))
}

// against returns one line for each import that violates the order of house, and for each package without a room.
func against(imports map[string][]string) []string {
	var wrong []string
	for _, pkg := range slices.Sorted(maps.Keys(imports)) {
		from := roomOf(pkg)
		if from < 0 {
			wrong = append(wrong, fmt.Sprintf("%s has no room", pkg))
			continue
		}
		for _, imported := range imports[pkg] {
			if to := roomOf(imported); to >= 0 && !mayImport(house[from], house[to]) {
				wrong = append(wrong, fmt.Sprintf("%s (%s) imports %s (%s)", pkg, house[from].name, imported,
					house[to].name))
			}
		}
	}
	return wrong
}

// below returns a package's path relative to the module. It returns false for a package of another module.
func below(importPath string) (string, bool) {
	if importPath == modulePath {
		return "", true
	}
	return strings.CutPrefix(importPath, modulePath+"/")
}

func list(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return string(out)
}

// imported maps each package of this module to the packages of this module that it imports, other than in its tests.
func imported(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(list(t, "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")) {
		words := strings.Fields(line)
		pkg, _ := below(words[0])
		all[pkg] = nil
		for _, word := range words[1:] {
			if path, ours := below(word); ours {
				all[pkg] = append(all[pkg], path)
			}
		}
	}
	return all
}

func TestPackagesImportOnlyLowerLayers(t *testing.T) {
	t.Parallel()
	for _, wrong := range against(imported(t)) {
		t.Error(wrong)
	}
}

func TestForbiddenImportsAreDetected(t *testing.T) {
	t.Parallel()
	for _, planted := range [][2]string{
		{"internal/engine", "internal/store/redis/servers"},
		{"internal/engine", "results/render"},
		{"results", "internal/measure"},
		{"results", "results/render"},
		{"results/html", "internal/engine"},
		{"internal/measure", "internal/store"},
		{"internal/store/redis/servers", "internal/engine"},
		{"strategies", "strategies/polled"},
		{"strategies/polled", "internal/store/redis/servers"},
		{"strategies/handoff", "results"},
		{"", "internal/testkit/redistest"},
		{"", "internal/apps/claims"},
		{"", "results/render"},
		{"internal/apps/claims", "command"},
		{"command", "strategies/all"},
		{"workloads", "results"},
		{"internal/launch", "internal/store"},
		{"internal/store/redis/servers", "internal/launch/containers"},
		{"", "internal/launch/containers"},
		{"internal/unheard", ""},
	} {
		if len(against(map[string][]string{planted[0]: {planted[1]}})) == 0 {
			t.Errorf("%q may import %q", planted[0], planted[1])
		}
	}
}

// A program that imports only lockbench must compile no renderer, nothing that starts containers, no client of other
// stores, and no locks except those of the baselines.
func TestLibraryImportsNoRendererAndNoLock(t *testing.T) {
	t.Parallel()
	baselines := []string{"strategies/baselines"}
	strangers := []string{
		"tablewriter", "gonum.org", "testcontainers", "docker", "moby", "etcd", "grpc", "pgx",
		"zookeeper",
	}
	for line := range strings.Lines(list(t, "-deps", ".")) {
		dep := strings.TrimSpace(line)
		pkg, ours := below(dep)
		at := roomOf(pkg)
		switch {
		case !ours && slices.ContainsFunc(strangers, func(s string) bool { return strings.Contains(dep, s) }):
		case ours && slices.Contains([]string{"leaves", "containers", "apps", "command", "test kit"}, house[at].name):
		case ours && house[at].name == "locks" && !slices.Contains(baselines, pkg):
		default:
			continue
		}
		t.Errorf("importing lockbench compiles %s", dep)
	}
}

// A module that tests its lock with the conformance suite must need only the modules in want. This must hold for every
// build tag, because go mod tidy considers the files of all tags.
func TestSuiteNeedsFewModules(t *testing.T) {
	t.Parallel()
	want := []string{
		"github.com/anishathalye/porcupine", "github.com/cespare/xxhash/v2", modulePath, "github.com/redis/go-redis/v9",
		"go.uber.org/atomic", "golang.org/x/sys",
	}
	for _, tags := range []string{"", "containers", "redisonly"} {
		modules := strings.Fields(list(t, "-deps", "-tags", tags, "-f", "{{with .Module}}{{.Path}}{{end}}",
			"./strategies/locktest/redisservers"))
		slices.Sort(modules)
		if got := slices.Compact(modules); !slices.Equal(got, want) {
			t.Errorf("with -tags %q it needs %v, want %v", tags, got, want)
		}
	}
}

// The program that "make demo" builds must contain go-redis as its only client. The program that "make build" builds
// must contain all clients.
func TestRedisonlyTagOmitsOtherClients(t *testing.T) {
	t.Parallel()
	compiled := func(tags string) string { return list(t, "-deps", "-tags", tags, "./cmd/lockbench") }
	demo, whole := compiled("redisonly"), compiled("")
	for _, client := range []string{"testcontainers", "moby", "etcd", "grpc", "pgx", "go-zookeeper", "rueidis"} {
		if strings.Contains(demo, client) {
			t.Errorf("with the tag it compiles %s", client)
		}
		if !strings.Contains(whole, client) {
			t.Errorf("without the tag it does not compile %s", client)
		}
	}
}
