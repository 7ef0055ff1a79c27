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
	none   error // Obtain's
	broken error // Run's
}

func (e fakeEngine) Obtain(context.Context, Image, func(string, ...any)) (string, error) {
	return "image:1", e.none
}

func (e fakeEngine) Run(_ context.Context, s Server) (Contained, error) {
	if s.Container.Image != "image:1" {
		return nil, errors.New("the image is " + s.Container.Image)
	}
	return fakeContained{}, e.broken
}
func (fakeEngine) Sweep(context.Context) Swept { return Swept{} }

type fakeContained struct{ Contained }

func (fakeContained) Addr() string    { return "127.0.0.1:1" }
func (fakeContained) Network() string { return OnHost }

// There is one rule for which way is tried first, and what is said of it.
func TestWays(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	noHost := errors.New("no such host")
	broken, missing := errors.New("broken\nin two lines"), errors.New("apt-get install it")
	inContainer := func(why string) Way { return Way{"container", "image:1", OnHost, why} }
	asProcess := func(why string) Way { return Way{"process", "", "loopback", why} }
	const works, instead = "no address was given and Docker works",
		"no address was given and no container could be had: "
	mine := Image{Wanted: "mine"}
	for name, test := range map[string]struct {
		ways               Ways
		noEngine           bool
		noImage            error
		container, process error
		want               Way
		wrong              string // in the error
		is                 error
	}{
		"a container first": {want: inContainer(works)},
		"else a process":    {container: broken, want: asProcess(instead + "broken; in two lines")},
		"without an engine": {noEngine: true, want: asProcess(instead + ErrNoEngine.Error())},
		"a process first": {
			ways: Ways{ProcessFirst: true}, want: asProcess("no address was given, and a process is tried first"),
		},
		"else a container": {
			ways: Ways{ProcessFirst: true}, process: missing,
			want: inContainer("no address was given and no process could be had: apt-get install it"),
		},
		"the image asked for": {ways: Ways{ProcessFirst: true, Image: mine}, want: inContainer(works)},
		"or nothing": {
			ways: Ways{Image: mine}, container: broken, wrong: "asked for, mine: broken; in",
			is: broken,
		},
		"a container asked for": {
			ways: Ways{Asked: "container"}, process: missing,
			want: inContainer("a container was asked for"),
		},
		"and no process instead": {ways: Ways{Asked: "container"}, container: broken, wrong: "broken", is: broken},
		"a process asked for": {
			ways: Ways{Asked: "process"}, container: broken,
			want: asProcess("a local process was asked for"),
		},
		"no image": {
			noImage: noHost,
			want:    asProcess(instead + "no image for a container: no such host"),
		},
		"no image, asked for": {
			ways: Ways{Asked: "container", Image: Image{Variable: "SOME_IMAGE"}}, noImage: noHost, is: ErrNoImage,
			wrong: "no such host; name an image that Docker has in SOME_IMAGE, or start a process: --redis process",
		},
		"no image, one to build": {
			ways: Ways{Asked: "container", Image: Image{Offline: "here:1"}}, noImage: noHost, is: ErrNoImage,
			wrong: "no such host; docker/setup.sh builds here:1",
		},
		"neither": {
			container: broken, process: missing, wrong: "broken; in two lines; apt-get install it",
			is: missing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := engine.open
			t.Cleanup(func() { engine.open = before })
			engine.open = nil
			if !test.noEngine {
				engine.open = func(context.Context) (Engine, error) {
					return fakeEngine{none: test.noImage, broken: test.container}, nil
				}
			}
			w := test.ways
			w.Program = func() (string, error) { return "/bin/sh", test.process }
			w.Start = func(ctx context.Context, begin Begin) ([]Started, error) {
				one, err := begin(ctx, Server{
					Name: "sh", Pick: FreePort, Ready: func(context.Context, Starting) error { return nil },
					Args: func(Place) []string { return []string{"-c", "sleep 600"} },
				})
				return []Started{one}, err
			}
			way, all, err := w.Run(t.Context())
			if err == nil && way.Source == "process" {
				defer all[0].Close(t.Context())
			}
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
