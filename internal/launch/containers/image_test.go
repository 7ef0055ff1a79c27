package containers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
)

// engineWith returns a client of a simulated Docker engine. The engine has the images in the list here, and can pull
// the images in the list registry. The returned integer counts the engine's attempts to pull.
func engineWith(t *testing.T, here, registry []string) (*docker, *int) {
	t.Helper()
	pulls := new(int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		_, path, _ := strings.Cut(r.URL.Path, "/images/")
		switch name, inspects := strings.CutSuffix(path, "/json"); {
		case inspects && slices.Contains(here, name):
			fmt.Fprint(w, `{"Id": "sha256:1"}`)
		case inspects:
			http.Error(w, `{"message":"No such image"}`, http.StatusNotFound)
		case path == "create":
			*pulls++
			asked := r.URL.Query()
			name := strings.TrimPrefix(asked.Get("fromImage"), "docker.io/library/") + ":" + asked.Get("tag")
			if !slices.Contains(registry, name) {
				fmt.Fprintln(w, `{"errorDetail": {"message": "no such host"}, "error": "no such host"}`)
				return
			}
			fmt.Fprintln(w, `{"status": "Pull complete"}`)
		}
	}))
	t.Cleanup(server.Close)
	api, err := client.New(client.WithHost("tcp://" + server.Listener.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", t.TempDir()) // no credentials
	provider := new(testcontainers.DockerProvider)
	provider.SetClient(api)
	return &docker{provider: provider, client: api}, pulls
}

// Obtain must prefer the requested image, then the default image, then the offline image. If the offline image exists,
// Obtain must not try to pull the default image, because a machine without a registry would wait for the timeout.
func TestObtain(t *testing.T) {
	redis := launch.Image{Default: "redis:8", Offline: "local:offline"}
	mine := launch.Image{Wanted: "mine:1", Default: "redis:8", Offline: "local:offline"}
	all := []string{"redis:8", "mine:1"}
	for name, test := range map[string]struct {
		image          launch.Image
		here, registry []string
		want           string
		pulls          int
	}{
		"requested and here":    {image: mine, here: []string{"mine:1"}, want: "mine:1"},
		"requested and pulled":  {image: mine, registry: all, want: "mine:1", pulls: 1},
		"requested, nowhere":    {image: mine, here: []string{"redis:8", "local:offline"}, pulls: 1},
		"the default is here":   {image: redis, here: []string{"redis:8", "local:offline"}, want: "redis:8"},
		"the default is pulled": {image: redis, registry: all, want: "redis:8", pulls: 1},
		"the offline one":       {image: redis, here: []string{"local:offline"}, registry: all, want: "local:offline"},
		"nothing":               {image: redis, pulls: 1},
		"no offline image":      {image: launch.Image{Default: "etcd:3"}, here: []string{"local:offline"}, pulls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			engine, pulls := engineWith(t, test.here, test.registry)
			got, err := engine.Obtain(t.Context(), test.image, t.Logf)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "no such host") {
					t.Errorf("%q, %v, want the registry's error", got, err)
				}
			} else if got != test.want || err != nil {
				t.Errorf("%q, %v, want %q", got, err, test.want)
			}
			if *pulls != test.pulls {
				t.Errorf("%d pulls, want %d", *pulls, test.pulls)
			}
		})
	}
}
