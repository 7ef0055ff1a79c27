package command_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/command"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// The test connects each driver over TLS, over a unix socket and through a Sentinel. The driver must acquire its lock
// in the requested database, or lockbench must reject the driver before the run.
func TestDriverConnectionSettings(t *testing.T) {
	t.Parallel()
	const user, secret = "alice", "a@b+c/%41:é"
	cert, key := redistest.Certificate(t)
	unknown, unknownKey := redistest.Certificate(t)
	ports, err := launch.FreePorts(2)()
	if err != nil {
		t.Fatal(err)
	}
	socket := redistest.Socket(t)
	listen := func(port int, cert, key, socket string, more ...string) {
		server := redistest.Start(t, append([]string{
			"--tls-port", strconv.Itoa(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
			"--unixsocket", socket, "--notify-keyspace-events", "KEA",
			"--user", user, "on", ">" + secret, "~*", "&*", "+@all",
		}, more...)...)
		others := server.Client(t).PSubscribe(t.Context(), "__keyevent@0__:*")
		if _, err := others.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			defer others.Close()
			select {
			case event := <-others.Channel():
				t.Errorf("%s in database 0: %s", event.Channel, event.Payload)
			default:
			}
		})
	}
	listen(ports[0], cert, key, socket)
	listen(ports[1], unknown, unknownKey, socket+"2", "--tls-auth-clients", "no")
	watched := redistest.StartWatched(t)
	password := filepath.Join(t.TempDir(), "password")
	place(t, password, secret+"\n", 0o600)
	login := (&url.URL{User: url.UserPassword(user, secret)}).User.String()
	ways := map[string][]string{
		"certificates and a password file": {
			"-u", "rediss://" + user + "@127.0.0.1:" + strconv.Itoa(ports[0]) + "/2", "--redis-password-file", password,
			"--ca-file", cert, "--cert", cert, "--key", key,
		},
		"any certificate of the server": {
			"-u", "rediss://" + login + "@127.0.0.1:" + strconv.Itoa(ports[1]) + "/2?skip_verify=true",
		},
		"a Sentinel":    {"-u", "redis+sentinel://" + watched.Sentinel + "/" + redistest.MasterName},
		"a unix socket": {"-u", "unix://" + login + "@" + socket + "?db=2"},
	}
	drivers, err := filepath.Abs("../drivers")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := exec.LookPath("driver") // which TestMain registers
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range extent.Chosen([]struct {
		name, needs string
		sockets     bool
	}{
		{"spin", "", true},
		{"redis-py", "python/site", true},
		{"redis-py-asyncio", "python/site", true},
		{"python-redis-lock", "python/site", true},
		{"aioredlock", "python/site", true},
		{"redlock", "node/node_modules", true},
		{"redis-semaphore", "node/node_modules", true},
		{"redisson", "redisson/target", false},
	}) {
		t.Run(test.name, func(t *testing.T) {
			driver := ours + " " + test.name
			if test.needs != "" {
				if _, err := os.Stat(filepath.Join(drivers, test.needs)); err != nil {
					t.Skip("it is not installed: make drivers")
				}
				driver = filepath.Join(drivers, test.name)
				if about, err := os.Stat(driver); err == nil && about.IsDir() {
					driver = filepath.Join(driver, "driver")
				}
			}
			for way, flags := range ways {
				t.Run(way, func(t *testing.T) { // one after another, because each needs the processor
					file := filepath.Join(t.TempDir(), "report.json")
					p := start(t, "lockbench", append([]string{
						"-s", "exec:" + driver, "-c", "4", "--instances", "2", "--hold", "1ms", "-d", "1s", "-w", "0s",
						"--no-baselines", "-q", "-o", "json=" + file,
					}, flags...)...)
					code := p.code()
					if way == "a unix socket" && !test.sockets {
						const says = "its driver does not connect by unix socket"
						if code != strconv.Itoa(command.ExitConfig) || !strings.Contains(p.said.String(), says) {
							t.Errorf("exit code %s, want %d and %q, said:\n%s", code, command.ExitConfig, says, &p.said)
						}
						return
					}
					if code != "0" && code != strconv.Itoa(command.ExitInvalid) { // invalid on a busy machine
						t.Fatalf("exit code %s, said:\n%s", code, &p.said)
					}
					run := readReport(t, file).Runs[0]
					if run.Failure != "" || len(run.Errors) > 0 || run.Speed.Acquisitions == 0 {
						t.Errorf("%d acquisitions, %q, %v", run.Speed.Acquisitions, run.Failure, run.Errors)
					}
				})
			}
		})
	}
}

// A driver need not declare which connections it supports. If the address needs more than plain TCP, lockbench must
// reject such a driver before the driver connects.
func TestUndeclaredDriverConnectionsAreRefused(t *testing.T) {
	t.Parallel()
	plain := filepath.Join(t.TempDir(), "plain")
	place(t, plain, "#!/bin/sh\ndriver spin | sed -u 's/,\"connects\":[^]]*]//'\n", 0o755)
	for address, says := range map[string]string{
		"unix:///nowhere":               plain + ": its driver does not connect by unix socket",
		"rediss://127.0.0.1:1":          plain + ": its driver does not connect by TLS",
		"rediss+sentinel://127.0.0.1/x": plain + ": its driver does not connect by TLS",
	} {
		p := start(t, "lockbench", "-s", "exec:"+plain, "-u", address, "-d", "100ms")
		if code := p.code(); code != strconv.Itoa(command.ExitConfig) || !strings.Contains(p.said.String(), says) {
			t.Errorf("%s: exit code %s, want %d and %q, said:\n%s", address, code, command.ExitConfig, says, &p.said)
		}
	}
}

// If a driver does not follow a failover of its primary, the run must be invalid and report the reason.
func TestDriverThatIgnoresFailover(t *testing.T) {
	t.Parallel()
	watched := redistest.StartWatched(t)
	ours, err := exec.LookPath("driver")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	p := start(t, "lockbench", "-s", "exec:"+ours+" spin", "-c", "4", "--hold", "1ms", "-d", "60s", "-w", "0s",
		"--no-baselines", "-o", "json="+file, "-u", "redis+sentinel://"+watched.Sentinel+"/"+redistest.MasterName)
	p.await("[1/1]")
	watched.Failover()
	poll.Until(t, "the old primary follows", func() bool { return watched.Is(0, "slave") })
	time.Sleep(time.Second) // for the clients to notice
	p.signal(os.Interrupt)
	_ = p.code()
	run := readReport(t, file).Runs[0]
	if why := run.Invalid.String(); !strings.Contains(why, "the server restarted or was replaced") ||
		!strings.Contains(why, "READONLY") {
		t.Errorf("it is invalid because of %q, said:\n%s", why, &p.said)
	}
}
