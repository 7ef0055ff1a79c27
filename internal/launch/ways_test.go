package launch

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// fakeEngine has one image, or none.
type fakeEngine struct {
	Engine
	none error
}

func (e fakeEngine) Obtain(context.Context, Image, func(string, ...any)) (string, error) {
	return "image:1", e.none
}
func (fakeEngine) Sweep(context.Context) Swept { return Swept{} }

// There is one rule for which way is tried first, and what is said of it.
func TestWays(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	noHost := errors.New("no such host")
	broken, missing := errors.New("broken\nin two lines"), errors.New("apt-get install it")
	for name, test := range map[string]struct {
		ways               Ways
		noEngine           bool
		noImage            error
		container, process error
		want               Way
		wrong              string // in the error
		is                 error
	}{
		"a container first":      {want: Way{Source: "container", Image: "image:1", Network: "host", Why: "no address was given and Docker works"}},
		"else a process":         {container: broken, want: Way{Source: "process", Network: "loopback", Why: "no address was given and no container could be had: broken; in two lines"}},
		"without an engine":      {noEngine: true, want: Way{Source: "process", Network: "loopback", Why: "no address was given and no container could be had: " + ErrNoEngine.Error()}},
		"a process first":        {ways: Ways{ProcessFirst: true}, want: Way{Source: "process", Network: "loopback", Why: "no address was given, and a process is tried first"}},
		"else a container":       {ways: Ways{ProcessFirst: true}, process: missing, want: Way{Source: "container", Image: "image:1", Network: "host", Why: "no address was given and no process could be had: apt-get install it"}},
		"the image asked for":    {ways: Ways{ProcessFirst: true, Image: Image{Wanted: "mine"}}, want: Way{Source: "container", Image: "image:1", Network: "host", Why: "no address was given and Docker works"}},
		"or nothing":             {ways: Ways{Image: Image{Wanted: "mine"}}, container: broken, wrong: "asked for, mine: broken; in", is: broken},
		"a container asked for":  {ways: Ways{Asked: "container"}, process: missing, want: Way{Source: "container", Image: "image:1", Network: "host", Why: "a container was asked for"}},
		"and no process instead": {ways: Ways{Asked: "container"}, container: broken, wrong: "broken", is: broken},
		"a process asked for":    {ways: Ways{Asked: "process"}, container: broken, want: Way{Source: "process", Network: "loopback", Why: "a local process was asked for"}},
		"no image": {noImage: noHost, want: Way{
			Source: "process", Network: "loopback",
			Why: "no address was given and no container could be had: no image for a container: no such host",
		}},
		"no image, asked for": {
			ways: Ways{Asked: "container", Image: Image{Variable: "SOME_IMAGE"}}, noImage: noHost, is: ErrNoImage,
			wrong: "no such host; name an image that Docker has in SOME_IMAGE, or start a process: --redis process",
		},
		"no image, one to build": {
			ways: Ways{Asked: "container", Image: Image{Offline: "here:1"}}, noImage: noHost, is: ErrNoImage,
			wrong: "no such host; docker/setup.sh builds here:1",
		},
		"neither": {container: broken, process: missing, wrong: "broken; in two lines; apt-get install it", is: missing},
	} {
		t.Run(name, func(t *testing.T) {
			before := engine.open
			t.Cleanup(func() { engine.open = before })
			engine.open = nil
			if !test.noEngine {
				engine.open = func(context.Context) (Engine, error) { return fakeEngine{none: test.noImage}, nil }
			}
			w := test.ways
			w.InContainers = func(_ context.Context, _ Engine, image string) (string, error) {
				if image != "image:1" {
					t.Errorf("the image is %s", image)
				}
				return "host", test.container
			}
			w.AsProcesses = func(context.Context) error { return test.process }
			way, err := w.Start(t.Context())
			if test.wrong != "" {
				if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("error %v, want %q", err, test.wrong)
				}
				return
			}
			if err != nil || way != test.want {
				t.Errorf("%+v, %v, want %+v", way, err, test.want)
			}
		})
	}
}
