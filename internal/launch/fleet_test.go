package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeEngine is an Engine whose Obtain and Run return the errors in its fields. They succeed if the errors are nil.
type fakeEngine struct {
	Engine
	none   error // error of Obtain
	broken error // error of Run
}

func (e fakeEngine) Obtain(context.Context, Image, func(string, ...any)) (string, error) {
	return "image:1", e.none
}

func (e fakeEngine) Run(_ context.Context, s Definition) (Started, error) {
	if s.Container.Image != "image:1" {
		return nil, errors.New("the image is " + s.Container.Image)
	}
	return fakeContainer{}, e.broken
}
func (fakeEngine) Sweep(context.Context) Swept { return Swept{} }

type fakeContainer struct{ Started }

func (fakeContainer) Network() string { return OnHost }

// Whether Start uses containers or processes must depend on the request, on the available images and on whether the
// engine works. The returned Way or error must give the reason.
func TestWays(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	noHost := errors.New("no such host")
	broken, missing := errors.New("broken\nin two lines"), errors.New("apt-get install it")
	inContainer := func(why string) Way { return Way{"container", "image:1", OnHost, why} }
	asProcess := func(why string) Way { return Way{"process", "", "loopback", why} }
	const works, instead = "no address was given and Docker works",
		"no address was given and no container could be started: "
	for name, test := range map[string]struct {
		fleet              Fleet
		asked              Request
		noEngine           bool
		noImage            error
		container, process error
		want               Way
		wrong              string // part of the error's text
		is                 error
	}{
		"a container first":   {want: inContainer(works)},
		"else a process":      {container: broken, want: asProcess(instead + "broken; in two lines")},
		"without an engine":   {noEngine: true, want: asProcess(instead + ErrNoEngine.Error())},
		"without containers":  {want: asProcess("no address was given")},
		"the image asked for": {asked: Request{Image: "mine"}, want: inContainer(works)},
		"or nothing": {
			asked: Request{Image: "mine"}, container: broken, wrong: "requested image mine could be started: broken; in",
			is: broken,
		},
		"a container asked for": {
			asked: Request{Address: "container"}, process: missing,
			want: inContainer("a container was requested"),
		},
		"and no process instead": {
			asked: Request{Address: "container"}, container: broken, wrong: "broken", is: broken,
		},
		"a process asked for": {
			asked: Request{Address: "process"}, container: broken,
			want: asProcess("a local process was requested"),
		},
		"no image": {
			noImage: noHost,
			want:    asProcess(instead + "no container image is available: no such host"),
		},
		"no image, asked for": {
			fleet: Fleet{Image: Image{Variable: "SOME_IMAGE"}}, asked: Request{Address: "container"},
			noImage: noHost, is: ErrNoImage,
			wrong: "no such host; name an image that Docker has in SOME_IMAGE, or start a process: --redis process",
		},
		"no image, one to build": {
			fleet: Fleet{Image: Image{Offline: "here:1"}}, asked: Request{Address: "container"},
			noImage: noHost, is: ErrNoImage, wrong: "no such host; docker/setup.sh builds here:1",
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
			f := test.fleet
			f.Members, f.Ports, f.Taken = 1, FreePorts(1), "port taken"
			if f.Image.Default = "image:1"; name == "without containers" {
				f.Image.Default = ""
			}
			f.Program = func() (string, error) { return "/bin/sh", test.process }
			f.Server = func(int, [][]int) Definition {
				return Definition{
					Name: "sh", Ready: func(context.Context, Starting) error { return nil },
					Args: func(Location) []string { return []string{"-c", "sleep 600"} },
				}
			}
			way, all, err := f.Start(t.Context(), test.asked)
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

// If another process takes a port, Start must start all members again on other ports. It must not retry after any other
// failure. A failed start must leave no files.
func TestFleetOnTakenPorts(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for taken, want := range map[error]int{errors.New("port taken"): 2, errors.New("broken"): 1} {
		var mu sync.Mutex
		tried := map[int]bool{} // first ports
		f := Fleet{
			Members: 2, Ports: FreePorts(2), Program: func() (string, error) { return "/bin/sh", nil },
			Taken: "port taken",
			Server: func(place int, ports [][]int) Definition {
				mu.Lock()
				defer mu.Unlock()
				tried[ports[0][0]] = true
				first := len(tried) == 1
				return Definition{
					Name: "sh", Args: func(Location) []string { return []string{"-c", "sleep 600"} },
					Ready: func(context.Context, Starting) error {
						if first && place == 1 {
							return taken
						}
						return nil
					},
				}
			},
		}
		_, all, err := f.Start(t.Context(), Request{Address: "process"})
		if len(tried) != want || (err == nil) != (want == 2) {
			t.Errorf("%v: %d attempts, %v", taken, len(tried), err)
		}
		if err := Each(t.Context(), all, Started.Close); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
}
