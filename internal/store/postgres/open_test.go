package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	_ "github.com/lockbench/lockbench/internal/store/redis" // to be told apart
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/extent"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/workloads"
)

// What cannot be opened says why, soon, and says no secret.
func TestWhatCannotBeOpened(t *testing.T) {
	t.Parallel()
	s := common(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	good := s.own.url()
	for name, test := range map[string]struct {
		address string
		is      error
		says    string
	}{
		"wrong password": {strings.Replace(good, s.own.password, "geheim", 1), store.ErrConfig, "user or password is wrong"},
		"no such user":   {strings.Replace(good, superuser+":", "nobody:", 1), store.ErrConfig, "user or password is wrong"},
		"no database":    {strings.Replace(good, "/postgres?", "/nothing?", 1), store.ErrConfig, "there is no such database"},
		"no TLS":         {strings.Replace(good, "sslmode=disable", "sslmode=require", 1), store.ErrConfig, "speaks no TLS"},
		"nothing there":  {"postgres://me:geheim@127.0.0.1:1/x", store.ErrUnreachable, "refused"},
		"a Redis":        {"postgres://me:geheim@" + redistest.Start(t).Addr + "/x", store.ErrConfig, "a Redis"},
		"silence":        {"postgres://me:geheim@" + silent.Addr().String() + "/x", store.ErrUnreachable, "does not answer"},
		"another scheme": {"redis://me:geheim@127.0.0.1:1", store.ErrConfig, "must be postgres://"},
		"cut password":   {"postgres://me:gehe/im@127.0.0.1:1/x", store.ErrConfig, "percent-encode"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait
			ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
			defer cancel()
			s, err := (Store{}).Open(ctx, "x", store.Options{Address: test.address})
			if err == nil {
				_ = s.Close(t.Context())
				t.Fatal("it was opened")
			}
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "gehe") || strings.Contains(err.Error(), "\n") {
				t.Error(err)
			}
			if ctx.Err() != nil {
				t.Error("it waited for as long as it might")
			}
		})
	}
}

func TestNoPrograms(t *testing.T) {
	t.Setenv("LOCKBENCH_POSTGRES_SERVER", t.TempDir())
	if _, err := (Store{}).Open(t.Context(), "x", store.Options{}); !errors.Is(err, store.ErrUnreachable) || !strings.Contains(err.Error(), "LOCKBENCH_POSTGRES_SERVER") {
		t.Error(err)
	}
	if !strings.Contains(errNoProgram.Error(), "apt-get install postgresql") {
		t.Error(errNoProgram)
	}
}

func TestValidate(t *testing.T) {
	for _, o := range []store.Options{
		{Topology: "cluster:3"}, {Durability: "some"}, {CAFile: "x"},
		{Address: "postgres://h/x", Pin: true}, {Address: "postgres://h/x", CAFile: "/nowhere"}, {Address: "postgres://h/x", Durability: store.InMemory},
	} {
		if err := (Store{}).Validate(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	for _, o := range []store.Options{{}, {Address: "container", Image: "postgres:15"}, {Address: "process", Topology: "single", Durability: store.InMemory}, {Address: "postgresql://h:5/x?sslmode=disable"}} {
		if err := (Store{}).Validate(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestDurabilityAndLimits(t *testing.T) {
	t.Parallel()
	s := opened(t, "x", store.Options{Durability: store.InMemory})
	if durability := s.Describe().Durability; durability != "memory" {
		t.Errorf("it says %q", durability)
	}
	limits, err := s.Limits(t.Context())
	if err != nil || limits.MaxClients < 2000 || limits.Connected < 1 {
		t.Errorf("%+v, %v", limits, err)
	}
	times, err := s.RoundTrips(t.Context(), "lockbench:x:floor")
	if err != nil || times.PingP50 == nil || *times.PingP50 <= 0 || times.ScriptP99 == nil {
		t.Errorf("%+v, %v", times, err)
	}
	if processes := backends(s); len(processes) < 3 {
		t.Errorf("%d processes", len(processes))
	}
}

// backends are the postmaster's children.
func backends(s *server) []string {
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.own.PID(), s.own.PID()))
	return strings.Fields(string(children))
}

// Kill and pause reach every process, and what is asked to be lost is lost.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := opened(t, "faulty", store.Options{})
	runs(t, s)
	instance, err := s.Connect(t.Context(), "lockbench:faulty:run1", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	counter := instance.Counter("lockbench:{faulty:1:0}:counter", workloads.FenceOff, 0)
	if err := counter.Write(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	state := func(pid string) string {
		status, _ := os.ReadFile("/proc/" + pid + "/stat")
		_, after, _ := strings.Cut(string(status), ") ")
		return after[:min(1, len(after))]
	}
	action := func(fault workloads.Fault) store.Action {
		action, err := s.Faults(nil).Prepare(t.Context(), fault, store.RunMarks{})
		if err != nil {
			t.Fatal(err)
		}
		return action
	}
	pause := action(workloads.Fault{Name: workloads.Pause})
	if err := pause.Hit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range backends(s) { // a signal is not heard at once
		poll.Until(t, "process "+pid+" stops", func() bool { return state(pid) == "T" })
	}
	if err := pause.End(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		data workloads.Data
		want int64
	}{{workloads.DataKeep, 7}, {workloads.DataLose, 0}, {workloads.DataLose, 0}} {
		kill := action(workloads.Fault{Name: workloads.Kill, Data: test.data})
		before := backends(s)
		if err := kill.Hit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, pid := range before {
			if state(pid) != "" && state(pid) != "Z" {
				t.Errorf("process %s lives on: %s", pid, state(pid))
			}
		}
		if err := kill.End(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
		n, err := counter.Read(t.Context())
		for range 5 { // each of the pool's connections learns of it for itself
			if err == nil {
				break
			}
			n, err = counter.Read(t.Context())
		}
		if err != nil || n != test.want {
			t.Errorf("data=%s: the counter is %d, %v", test.data, n, err)
		}
	}
	for _, name := range []string{workloads.Failover, workloads.NodeDown, workloads.Partition, workloads.ScriptFlush} {
		if problems := s.Impossible([]workloads.Fault{{Name: name}}); len(problems) != 1 || !strings.Contains(problems[0].Error(), "--fault "+name) {
			t.Errorf("%s: %v", name, problems)
		}
	}
	if problems := (layout{}).Impossible([]workloads.Fault{{Name: workloads.Kill}, {Name: workloads.HolderCrash}}); len(problems) != 1 {
		t.Errorf("on a user's server: %v", problems)
	}
}

// runs are runs with faults, of the server and of clients.
func runs(t *testing.T, s *server) {
	faults := []string{"holder-crash:at=100ms", "kill:at=100ms,for=200ms,data=keep"}
	if extent.Thorough() {
		faults = append(faults, "waiter-crash:at=100ms,n=2", "holder-pause:at=100ms,for=300ms", "pause:at=100ms,for=300ms")
	}
	for _, text := range faults {
		t.Run(text, func(t *testing.T) {
			fault, err := workloads.ParseFault(text)
			if err != nil {
				t.Fatal(err)
			}
			measured(t, s, nil, func(w *workloads.Spec) { w.Work, w.Faults = workloads.WorkNone, []workloads.Fault{fault} })
		})
	}
}

// The fences refuse what they should.
func TestCounterFences(t *testing.T) {
	s := common(t)
	instance, err := s.Connect(t.Context(), "lockbench:fences:run1", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer instance.Close()
	for fence, refused := range map[workloads.Fence][]bool{ // old read, old write, after a new one has read
		workloads.FenceOff: {false, false}, workloads.FenceWrites: {false, false}, workloads.FenceAll: {true, true},
	} {
		name := "lockbench:{fences:1:" + string(fence) + "}:counter"
		older, newer := instance.Counter(name, fence, 5), instance.Counter(name, fence, 6)
		if n, err := newer.Read(t.Context()); err != nil || n != 0 {
			t.Fatalf("%s: %d, %v", fence, n, err)
		}
		_, read := older.Read(t.Context())
		write := older.Write(t.Context(), 1)
		if errors.Is(read, store.ErrStale) != refused[0] || errors.Is(write, store.ErrStale) != refused[1] {
			t.Errorf("%s: %v, %v", fence, read, write)
		}
		if err := newer.Write(t.Context(), 9); err != nil {
			t.Errorf("%s: %v", fence, err)
		}
		if late := older.Write(t.Context(), 2); errors.Is(late, store.ErrStale) != (fence != workloads.FenceOff) {
			t.Errorf("%s: after a newer write: %v", fence, late)
		}
		if n, err := newer.Read(t.Context()); err != nil || fence != workloads.FenceOff && n != 9 {
			t.Errorf("%s: %d, %v", fence, n, err)
		}
	}
}

const victimEnv = "LOCKBENCH_TEST_OPEN"

func TestHelperOpen(t *testing.T) {
	address := os.Getenv(victimEnv)
	if address == "" {
		t.Skip("it only runs as another test's subprocess")
	}
	s, err := (Store{}).Open(t.Context(), "deadbeef", store.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	instance, err := s.Connect(t.Context(), "lockbench:deadbeef:run1", 1, nil)
	if err == nil {
		err = instance.Counter("lockbench:{deadbeef:1:0}:counter", workloads.FenceOff, 0).Write(t.Context(), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := ""
	if own := s.(*server).own; own != nil {
		dir = own.Started.(*launch.Process).Dir()
	}
	fmt.Printf("\nopened %s %s\n", s.Describe().Address, dir)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// What a killed lockbench has left is removed by the next one: not before it is dead, and not what others have.
func TestSweep(t *testing.T) {
	users := common(t)
	eye := connected(t, users.own.url())
	if _, err := eye.Exec(t.Context(), `CREATE SCHEMA lockbench_session_mine;
		CREATE TABLE lockbench_session_mine.lockbench_counter (n int); CREATE SCHEMA lockbench_session_12345678;
		CREATE SCHEMA "lockbench_session_DEADBEEF"; CREATE SCHEMA lockbench_session_deadbeef_old;
		CREATE SCHEMA lockbench_session_beadfeed; CREATE TABLE lockbench_session_beadfeed.lockbench_counter (n int);
		CREATE TABLE lockbench_session_beadfeed.lockbench_dear (n int)`); err != nil {
		t.Fatal(err)
	}
	theirs := contents(t, eye)
	has := func(schema string) bool { return slices.Contains(contents(t, eye), "schema "+schema) }
	for name, address := range map[string]string{"process": "process", "address": users.own.url()} {
		t.Run(name, func(t *testing.T) {
			victim := exec.Command(os.Args[0], "-test.run=^TestHelperOpen$")
			victim.Env = append(os.Environ(), victimEnv+"="+address)
			if _, err := victim.StdinPipe(); err != nil {
				t.Fatal(err)
			}
			output, err := victim.StdoutPipe()
			if err == nil {
				err = victim.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _, _ = victim.Process.Kill(), victim.Wait() })
			var at, dir string
			for lines := bufio.NewScanner(output); at == "" && lines.Scan(); {
				if opened, ok := strings.CutPrefix(lines.Text(), "opened "); ok {
					at, dir, _ = strings.Cut(opened, " ")
				}
			}
			if at == "" {
				t.Fatal("the subprocess has opened nothing")
			}
			there := func() bool {
				if dir == "" {
					return has("lockbench_session_deadbeef")
				}
				_, err := os.Stat(filepath.Join(dir, dataDir))
				return err == nil
			}
			var warned []string
			next := func() { // whose first act is a sweep of processes
				warned = nil
				s, err := (Store{}).Open(t.Context(), store.NewRunID(), store.Options{
					Address: users.own.url(), Warn: func(warning string) { warned = append(warned, warning) },
				})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}
			clean := func() {
				next()
				if dir == "" && len(warned) > 0 && !there() {
					t.Error("a run removed it")
				}
				if _, err := (Store{}).Sweep(t.Context(), store.NewRunID(), store.Options{Address: users.own.url()}); err != nil {
					t.Fatal(err)
				}
			}
			if clean(); !there() {
				t.Error("it was swept while its lockbench lived")
			}
			_ = victim.Process.Kill()
			_ = victim.Wait()
			poll.Until(t, "it is swept", func() bool { clean(); return !there() })
			if dir == "" && !strings.Contains(strings.Join(warned, "\n"), "killed runs (beadfeed, deadbeef) left 2 schemas on") {
				t.Errorf("what the dead one left is not told: %q", warned)
			}
			if conn, err := net.Dial("tcp", at); dir != "" && err == nil {
				_ = conn.Close()
				t.Error("its server lives on")
			}
			for _, line := range theirs {
				if !slices.Contains(contents(t, eye), line) {
					t.Errorf("somebody else's was removed: %s", line)
				}
			}
		})
	}
}

func TestCommands(t *testing.T) {
	message := func(kind byte, body string) string {
		return string([]byte{kind, 0, 0, byte((len(body) + 4) >> 8), byte(len(body) + 4)}) + body
	}
	var c commands
	for _, test := range []struct{ written, want string }{
		{message('P', "s1\x00SELECT pg_advisory_lock($1)\x00\x00\x00") + message('D', "Ss1\x00") + message('S', ""), "[]"},
		{message('B', "\x00s1\x00\x00\x00") + message('E', "\x00\x00\x00\x00\x00") + message('S', ""), "[pg_advisory_lock]"},
		{message('P', "\x00BEGIN ISOLATION LEVEL READ COMMITTED\x00\x00\x00") + message('B', "\x00\x00\x00\x00") +
			message('P', "\x00SELECT true FROM t WHERE key = $1 FOR UPDATE SKIP LOCKED\x00\x00\x00") + message('B', "\x00\x00\x00\x00"), "[begin select for update]"},
		{message('Q', "select pg_is_in_recovery()\x00"), "[]"},
		{message('Q', "COMMIT;\x00"), "[commit]"},
		{"\x00\x00\x00\x08\x04\xd2\x16\x2f", "[]"}, {message('Q', "COMMIT\x00")[:6], "[]"}, {"", "[]"},
	} {
		if got := fmt.Sprint(c.Commands([]byte(test.written))); got != test.want {
			t.Errorf("%q: %s, want %s", test.written, got, test.want)
		}
	}
}
