package containers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
)

// A sweep must remove a container together with its home if the home exists and is not locked. It must leave the
// containers of a live lockbench, those of another machine, and those without lockbench's label.
func TestSweepOfContainers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	home := func() launch.Home {
		home, err := launch.HomeOfContainer()
		if err != nil {
			t.Fatal(err)
		}
		return home
	}
	alive, dead, stuck, gone := home(), home(), home(), home()
	for _, ended := range []launch.Home{dead, stuck, gone} {
		ended.Leave()
	}
	defer alive.Leave()
	labels := map[string]string{
		"alive": alive.Dir, "dead": dead.Dir, "stuck": stuck.Dir, "gone": gone.Dir,
		"elsewhere": filepath.Join(os.TempDir(), "lockbench-container-elsewhere"), // of another machine's lockbench
		"foreign":   t.TempDir(), "none": "",
	}
	var asked []string
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		_, id, _ := strings.Cut(r.URL.Path, "/containers/")
		switch {
		case id == "json":
			var all []any
			for id, label := range labels {
				all = append(all, map[string]any{"Id": id, "Labels": map[string]string{ownerLabel: label}})
			}
			_ = json.NewEncoder(w).Encode(all)
		case r.Method == http.MethodDelete:
			asked = append(asked, id)
			switch id {
			case "stuck":
				http.Error(w, `{"message":"it does not end"}`, http.StatusInternalServerError)
			case "gone":
				http.Error(w, `{"message":"No such container"}`, http.StatusNotFound)
			default:
				w.WriteHeader(http.StatusNoContent)
			}
		}
	}))
	t.Cleanup(engine.Close)
	api, err := client.New(client.WithHost("tcp://" + engine.Listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	provider := new(testcontainers.DockerProvider)
	provider.SetClient(api)
	swept := (&docker{provider: provider, client: api}).Sweep(t.Context())
	slices.Sort(asked)
	if want := []string{"dead", "gone", "stuck"}; !slices.Equal(asked, want) {
		t.Errorf("it removes %v, want %v", asked, want)
	}
	if len(swept.Containers) != 2 || len(swept.Skipped) != 1 || !strings.Contains(swept.Skipped[0], "does not end") {
		t.Errorf("swept %+v", swept)
	}
	for name, home := range map[string]launch.Home{"alive": alive, "dead": dead, "stuck": stuck, "gone": gone} {
		_, err := os.Stat(home.Dir)
		if stays := name == "alive" || name == "stuck"; stays != (err == nil) {
			t.Errorf("the home of %s: %v", name, err)
		}
	}
	if home, left := launch.Abandoned(stuck.Dir); !left {
		t.Error("no later sweep finds the container that stays")
	} else {
		home.Leave()
	}
}
