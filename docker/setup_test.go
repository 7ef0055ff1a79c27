// Package docker_test runs setup.sh on simulated machines, on which stubs replace most programs.
package docker_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machine simulates a machine. Its directory path serves as $PATH. The directory contains a few basic shell commands,
// and stubs that record their calls.
type machine struct {
	t    *testing.T
	path string
}

func newMachine(t *testing.T, stubs map[string]string) machine {
	t.Helper()
	m := machine{t, t.TempDir()}
	tools := "sh env rm tee chmod cat sed cksum mktemp mkdir cp dirname"
	for tool := range strings.FieldsSeq(tools) {
		real, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(m.path, tool)); err != nil {
			t.Fatal(err)
		}
	}
	// The simulated user is not root. No stub changes the real machine: a stub that installs a program only creates
	// another stub. It does so only if policy-rc.d keeps the program's service from starting.
	m.stub("id", "echo 1000")
	for name, body := range stubs {
		m.stub(name, body)
	}
	return m
}

func (m machine) stub(name, body string) {
	m.t.Helper()
	script := "#!/bin/sh\necho " + name + " \"$@\" >>\"$CALLS\"\n" + body + "\n"
	if err := os.WriteFile(filepath.Join(m.path, name), []byte(script), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) policy() string { return filepath.Join(m.path, "policy-rc.d") }

// run runs setup.sh. It returns the recorded calls to stubs, the output, and whether setup.sh succeeded.
func (m machine) run(args ...string) (calls, said string, ok bool) {
	m.t.Helper()
	file := filepath.Join(m.t.TempDir(), "calls")
	cmd := exec.Command("/bin/sh", append([]string{"setup.sh"}, args...)...)
	context := m.t.TempDir()
	cmd.Env = []string{
		"TMPDIR=" + context, "PATH=" + m.path, "CALLS=" + file, "STUBS=" + m.path, "POLICY_RC_D=" + m.policy(),
		"POSTGRES_BIN=" + os.Getenv("POSTGRES_BIN"), "ZOOKEEPER_JAR=" + os.Getenv("ZOOKEEPER_JAR"),
	}
	output, err := cmd.CombinedOutput()
	if left, _ := filepath.Glob(filepath.Join(context, "*")); len(left) > 0 {
		m.t.Errorf("leftovers: %v", left)
	}
	called, _ := os.ReadFile(file)
	return string(called), string(output), err == nil
}

const (
	works = "exit 0"
	fails = "exit 1"
	sudo  = `[ "$1" = -n ] && shift; "$@"`
	// noRegistry is a Docker that can build images but cannot pull any.
	noRegistry = `case "$*" in
		"image inspect"*lockbench-redis:offline) cat "$STUBS/built" 2>/dev/null; exit ;;
		"image inspect"*|pull*) exit 1 ;;
		build*)
			while [ "$1" != --label ]; do shift; done
			echo "${2#parts=}" >"$STUBS/built"
			for file in usr/bin/redis-server usr/bin/redis-cli "${STUBS#/}/libm.so.6" "${STUBS#/}/ld.so"; do
				[ -e "$3/root/$file" ] || exit 1
			done ;;
		esac`
	ldd = `case "$1" in *cli) exit 1 ;; esac # it is static
		printf '\tlinux-vdso.so.1 (0x01)\n\tlibm.so.6 => %s/libm.so.6 (0x02)\n\t%s/ld.so (0x03)\n' "$STUBS" "$STUBS"`
	aptInstall = `case "$*" in *install*)
		[ -x "$POLICY_RC_D" ] && printf '#!/bin/sh\n' >"$STUBS/redis-server" && chmod 755 "$STUBS/redis-server" ;;
		esac`
)

func TestSetup(t *testing.T) {
	for name, test := range map[string]struct {
		stubs  map[string]string
		ok     bool
		called string // a call that must occur
		never  string // a call that must not occur
	}{
		"the image is there": {
			stubs: map[string]string{"docker": works}, ok: true,
			called: "docker image inspect redis:8", never: "pull",
		},
		"the binary is there, Docker is not": {
			stubs: map[string]string{"redis-server": works, "apt-get": fails}, ok: true, never: "apt-get",
		},
		"the binary is there, the image is not": {
			stubs: map[string]string{"redis-server": works, "docker": `[ "$1" = info ] || [ "$1" = pull ]`}, ok: true,
			called: "docker pull -q redis:8", never: "docker build",
		},
		"an image is built": {
			stubs: offline(noRegistry), ok: true,
			called: "docker run --rm --network none lockbench-redis:offline redis-server --version", never: "apt-get",
		},
		"the image that was built does not run": {
			stubs: offline(`[ "$1" = run ] && exit 1
				` + noRegistry), ok: true, called: "docker image rm -f lockbench-redis:offline", never: "apt-get",
		},
		"nothing to build it of": {
			stubs: map[string]string{"docker": noRegistry, "apt-get": fails, "sudo": sudo, "ldd": ldd},
			never: "docker build",
		},
		"the image can be pulled": {
			stubs: map[string]string{"docker": `[ "$1" = info ] || [ "$1" = pull ]`, "apt-get": fails}, ok: true,
			called: "docker pull -q redis:8", never: "apt-get",
		},
		"no registry": {
			stubs: map[string]string{
				"docker": `[ "$1" = info ]`, "apt-get": aptInstall, "sudo": sudo, "systemctl": works,
			}, ok: true,
			called: "systemctl disable redis-server",
		},
		"Docker does not run": {
			stubs: map[string]string{"docker": fails, "apt-get": aptInstall, "sudo": sudo}, ok: true,
			called: "apt-get install", never: "pull",
		},
		"package lists are missing": {
			stubs: map[string]string{"apt-get": `case "$*" in
				update*) : >"$STUBS/updated" ;;
				*) [ -e "$STUBS/updated" ] || exit 100; ` + aptInstall + ` ;; esac`, "sudo": sudo}, ok: true,
			called: "apt-get update",
		},
		"the package cannot be had": {
			stubs: map[string]string{"apt-get": fails, "sudo": sudo}, called: "apt-get install",
		},
		"sudo asks for a password": {
			stubs: map[string]string{"apt-get": aptInstall, "sudo": fails}, never: "apt-get",
		},
		"nothing at all": {},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, test.stubs)
			calls, said, ok := m.run()
			if ok != test.ok {
				t.Errorf("success is %v: %s%s", ok, said, calls)
			}
			if !strings.Contains(calls, test.called) {
				t.Errorf("%q was not called:\n%s%s", test.called, calls, said)
			}
			if test.never != "" && strings.Contains(calls, test.never) {
				t.Errorf("%q was called:\n%s", test.never, calls)
			}
			for _, way := range []string{"apt-get install", "dnf install", "brew install", "Docker"} {
				if !ok && !strings.Contains(said, way) {
					t.Errorf("it does not say how else, %q: %s", way, said)
				}
			}
			if _, err := os.Stat(m.policy()); err == nil {
				t.Error("services are still forbidden to start")
			}
		})
	}
}

// "setup.sh engine" must succeed if and only if docker works.
func TestSetupReportsContainerEngine(t *testing.T) {
	for docker, want := range map[string]bool{works: true, fails: false} {
		if calls, said, ok := newMachine(t, map[string]string{"docker": docker}).run("engine"); ok != want {
			t.Errorf("where docker does %q, it says %v: %s%s", docker, ok, said, calls)
		}
	}
}

// "setup.sh stores" must install the missing stores and no others.
func TestSetupOfStores(t *testing.T) {
	for name, test := range map[string]struct {
		stubs  map[string]string
		files  []string
		ok     bool
		called string
		never  string
	}{
		"all are there": {
			stubs: map[string]string{"etcd": works, "java": works, "apt-get": fails},
			files: []string{"bin/postgres", "zookeeper.jar", "pgbouncer"}, ok: true, never: "apt-get",
		},
		"PostgreSQL is on PATH": {
			stubs: map[string]string{"etcd": works, "java": works, "postgres": works, "apt-get": fails},
			files: []string{"zookeeper.jar", "pgbouncer"}, ok: true, never: "apt-get",
		},
		"two are missing": {
			stubs: map[string]string{"etcd": works, "apt-get": works, "sudo": sudo, "systemctl": works},
			files: []string{"zookeeper.jar", "pgbouncer"}, ok: true,
			called: "--no-install-recommends postgresql zookeeper\n", never: "etcd-server",
		},
		"a service is called otherwise": {
			stubs: map[string]string{"java": works, "apt-get": works, "sudo": sudo, "systemctl": `[ "$2" = etcd ]`},
			files: []string{"bin/postgres", "zookeeper.jar", "pgbouncer"}, ok: true,
			called: "systemctl disable etcd\n",
		},
		"they cannot be installed": {
			stubs: map[string]string{"apt-get": fails, "sudo": sudo}, called: "apt-get install", never: "redis",
		},
		"nobody may install": {stubs: map[string]string{"apt-get": works, "sudo": fails}, never: "apt-get"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, test.stubs)
			files := t.TempDir()
			for _, file := range test.files {
				path := filepath.Join(files, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("POSTGRES_BIN", files+"/bin")
			t.Setenv("ZOOKEEPER_JAR", files+"/zookeeper.jar")
			t.Setenv("PGBOUNCER", files+"/pgbouncer")
			calls, said, ok := m.run("stores")
			if ok != test.ok {
				t.Errorf("success is %v: %s%s", ok, said, calls)
			}
			if !strings.Contains(calls, test.called) {
				t.Errorf("%q was not called:\n%s%s", test.called, calls, said)
			}
			if test.never != "" && strings.Contains(calls, test.never) {
				t.Errorf("%q was called:\n%s", test.never, calls)
			}
			for _, way := range []string{"apt-get install", "etcd-server", "-u etcd://"} {
				if !ok && !strings.Contains(said, way) {
					t.Errorf("it does not say how else, %q: %s", way, said)
				}
			}
			if _, err := os.Stat(m.policy()); err == nil {
				t.Error("services are still forbidden to start")
			}
		})
	}
}

// offline returns the stubs of a machine that has redis-server but no access to an image registry or to packages. The
// parameter docker is the script of its docker stub.
func offline(docker string) map[string]string {
	return map[string]string{
		"docker": docker, "ldd": ldd, "apt-get": fails,
		"redis-server": works, "redis-cli": works, "libm.so.6": works, "ld.so": works,
	}
}

// setup.sh must build the offline image at its first call, reuse it at later calls, and build it again if a library of
// redis-server has changed.
func TestOfflineImage(t *testing.T) {
	m := newMachine(t, offline(noRegistry))
	build := func() bool {
		calls, said, ok := m.run()
		if !ok {
			t.Errorf("it failed: %s", said)
		}
		return strings.Contains(calls, "docker build")
	}
	if !build() || build() {
		t.Error("it is not built the first time alone")
	}
	m.stub("libm.so.6", "another")
	if !build() || build() {
		t.Error("it is not built again when a library is another")
	}
}
