// Package driver lets programs in any language run the clients of a lock, through the protocol in docs/DRIVERS.md. The
// package does not trust the output of these programs.
package driver

// This file starts a driver, exchanges messages with it, and makes it the Locker of one instance. run.go uses the
// driver for whole runs, and lock.go for single calls.
//
// One goroutine, listen, reads all messages and passes each response to the request with its ID. Any goroutine may send
// requests. On the first violation of the protocol, lockbench kills the process, and all later requests return an error
// that describes the violation. A goroutine that needs both mutexes locks asking before mu.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Driver is a running driver process. It opens the connections of one instance and runs the clients of that instance.
type Driver struct {
	process *process
	config  goredis.Config
	extends bool // the driver can extend leases
	patience

	asking  sync.Mutex // guards writes to the driver's standard input, and next
	next    int64      // ID of the last request
	mu      sync.Mutex
	pending map[int64]chan heard    // channels for the responses, by the ID of the request
	watched map[int64]chan struct{} // by the ID of the request acquire; closed when the lease is lost
	late    sync.WaitGroup          // calls of the library that continue after the end of their contexts
	broken  error                   // why the driver will send no more responses
	died    error                   // like broken, but nil if Close ended the driver
	ended   chan struct{}           // closed when the driver will send no more responses
	closed  bool
}

// patience holds the time limits for a driver. start limits the time of each response to hello, clock and open. run
// limits the time between two consecutive reports of a run. stop limits the time from the end of a run until the
// driver's last client has stopped.
type patience struct{ start, run, stop time.Duration }

// heard is a driver's response and the instant at which lockbench read it, in ns of CLOCK_MONOTONIC.
type heard struct {
	answer
	at int64
}

// Hello holds what a driver reports about itself in its response to the request hello. Its strings are safe to print.
type Hello struct {
	Name, Version, Runtime string
	Info                   strategies.Info
}

// launched starts a driver, requests its Hello and checks its clock. If one of these steps fails, launched ends the
// driver and returns the error.
func launched(ctx context.Context, command []string, p patience) (*Driver, Hello, error) {
	process, err := start(command)
	if err != nil {
		return nil, Hello{}, err
	}
	d := &Driver{
		process: process, patience: p, pending: map[int64]chan heard{},
		watched: map[int64]chan struct{}{}, ended: make(chan struct{}),
	}
	go d.listen() // ends with the process
	said, err := d.ask(ctx, p.start, question{Do: "hello", Protocol: Version})
	if err == nil {
		err = d.checkClock(ctx)
	}
	var hello Hello
	if err == nil {
		d.extends = said.Extends
		hello, err = introduced(said.answer)
	}
	if err != nil {
		_ = d.Close()
		return nil, Hello{}, err
	}
	return d, hello, nil
}

// unknown returns the Info that lockbench assumes for a driver until the driver has sent its Hello.
func unknown() strategies.Info {
	return strategies.Info{
		Name: "exec", Capacity: 1, Nodes: 1, BlackBox: true, Driver: true,
		NoCluster: "a driver connects only to single servers, not to clusters", Connects: ways(),
		Limits: []strategies.Limit{
			{Check: "closed", Because: "a driver's process ends with its Locker"},
			{Check: "connections", Because: "a driver does not declare its connections"},
		},
	}
}

// ways returns the kinds of connections that a driver may support in addition to plain TCP.
func ways() []string { return []string{"unix", "tls"} }

// introduced converts the response to hello to a Hello. It returns an error if lockbench does not support the protocol
// version or a claim, if a number such as the capacity is out of range, or if the name of a key is not allowed.
func introduced(a answer) (Hello, error) {
	if a.Protocol != Version {
		return Hello{}, fmt.Errorf("the driver speaks version %d of the protocol, but lockbench speaks version %d",
			a.Protocol, Version)
	}
	h := Hello{Name: short(a.Name), Version: short(a.Version), Runtime: short(a.Runtime)}
	h.Info = unknown()
	info := &h.Info
	info.Caveat, info.Format, info.Counts, info.MaxInstances = short(a.Caveat), short(a.Format), a.Counts, a.MostRuns
	// A kind of connection that this version of lockbench does not know is ignored.
	info.Connects = slices.DeleteFunc(ways(), func(way string) bool { return !slices.Contains(a.Connects, way) })
	info.Summary = strings.Join(strings.Fields(h.Name+" "+h.Version+" "+h.Runtime), " ")
	// The first word of Runtime is the language. The first word of Name is the library, and the rest of Name is the lock.
	if language, _, _ := strings.Cut(h.Runtime, " "); language != "" {
		name, lock, _ := strings.Cut(h.Name, " ")
		call := strings.TrimSpace(lock + " " + h.Version)
		info.Libraries = []strategies.Library{{Language: language, Package: name, Call: call}}
	}
	if a.Capacity != nil {
		info.Capacity = *a.Capacity
	}
	if a.Nodes != nil {
		info.Nodes = *a.Nodes
	}
	if info.Capacity < 0 || info.Capacity > mostHolders || info.Nodes < 0 || info.Nodes > mostNames || a.MostRuns < 0 {
		return h, fmt.Errorf("the driver's capacity %d, nodes %d or max_instances %d is out of range: capacity must be "+
			"from 0 to %d, nodes from 0 to %d, and max_instances 0 or more",
			info.Capacity, info.Nodes, a.MostRuns, mostHolders, mostNames)
	}
	for _, claim := range a.Claims {
		// An unknown claim is an error, because lockbench could not check it.
		made, known := map[string]*bool{
			"exclusion": &info.Claims.Exclusion, "recovery": &info.Claims.Recovery, "fifo": &info.Claims.FIFO,
			"bounded": &info.Claims.Bounded, "fencing": &info.Claims.Fencing, "watchdog": &info.Claims.Watchdog,
		}[claim]
		if !known {
			return h, fmt.Errorf("the driver claims %s, which is not a guarantee that lockbench knows", short(claim))
		}
		*made = true
	}
	if len(a.Keys) > mostNames || len(a.Keeps) > mostNames {
		return h, fmt.Errorf("the driver names more than %d keys", mostNames)
	}
	for _, key := range append(a.Keys, a.Keeps...) {
		if !strings.Contains(key, "{key}") || len(key) > longestText {
			return h, fmt.Errorf("the driver's key name %s does not contain {key}, or is longer than %d bytes",
				short(key), longestText)
		}
	}
	info.Keys, info.Persistent = a.Keys, a.Keeps
	if info.Keys == nil {
		info.Keys = []string{"{key}"}
	}
	return h, nil
}

// short returns a driver's text in a form that is safe to print, cut to longestText bytes.
func short(text string) string {
	if len(text) > longestText {
		text = text[:longestText] + "…"
	}
	return untrusted.Printable(text)
}

// listen passes each response to the caller that waits for it. It returns when the driver ends or violates the
// protocol.
func (d *Driver) listen() {
	err := d.readResponses(bufio.NewReaderSize(d.process.out, longestLine))
	if errors.Is(err, io.EOF) {
		err = errors.New(d.process.ending())
		// The last line on the driver's standard error often names the cause, such as a Python exception.
		if lines := strings.Split(strings.TrimSpace(d.process.log.String()), "\n"); lines[0] != "" {
			err = fmt.Errorf("%w: %s", err, short(lines[len(lines)-1]))
		}
	}
	_ = d.fail(err)
	close(d.ended)
}

// readResponses reads the driver's output and passes each response to its request. It returns io.EOF at the end of the
// output, and an error for a violation of the protocol. It reads the clock before it parses a message: the time that a
// driver reports in response to the request clock cannot be later than that reading.
func (d *Driver) readResponses(lines *bufio.Reader) error {
	for {
		line, err := lines.ReadSlice('\n')
		h := heard{at: monotonic()}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("the driver wrote a line longer than %d bytes", longestLine)
		case err != nil:
			return io.EOF // also if the pipe was closed
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		if err := json.Unmarshal(line, &h.answer); err != nil {
			return fmt.Errorf("the driver wrote a line that is not a message of the protocol: %s",
				short(string(bytes.TrimSpace(line))))
		}
		if h.Lost {
			if err := d.lose(h.ID); err != nil {
				return err
			}
			continue
		}
		d.mu.Lock()
		to, asked := d.pending[h.ID]
		if asked && h.Watched { // registered before the driver can report its loss
			d.watched[h.ID] = make(chan struct{})
		}
		d.mu.Unlock()
		if !asked {
			return fmt.Errorf("the driver sent a response with the id %d, but no open request has this id", h.ID)
		}
		select {
		case to <- h:
		// Only a driver that violates the protocol fills the buffer of the channel. Such a driver must not block the
		// responses to other requests.
		case <-time.After(runPatience):
			return fmt.Errorf("the driver sent more responses to request %d than the protocol allows", h.ID)
		}
	}
}

// lose closes the Lost channel of a lease. acquire is the ID of the request that obtained the lease. lose returns an
// error if the driver did not declare that lease as watched.
func (d *Driver) lose(acquire int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost, watched := d.watched[acquire]
	if !watched {
		return fmt.Errorf("the driver reported the lease of request %d as lost, but did not declare it as watched",
			acquire)
	}
	select {
	case <-lost: // the driver repeats the report
	default:
		close(lost)
	}
	return nil
}

// give sends a request. It returns the request's ID, the channel of its responses, and a function that unregisters that
// channel. It returns an error if the driver has ended or does not read the request within patience.run.
func (d *Driver) give(q question) (answers <-chan heard, forget func(), id int64, err error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.next++
	q.ID = d.next
	text, err := json.Marshal(q)
	if err != nil {
		return nil, nil, 0, err
	}
	// The channel is registered before the request is written, because the response may arrive before Write returns.
	to := make(chan heard, 16)
	d.mu.Lock()
	d.pending[q.ID] = to
	d.mu.Unlock()
	_ = d.process.in.SetWriteDeadline(time.Now().Add(d.patience.run)) // pipes support deadlines
	if _, err := d.process.in.Write(append(text, '\n')); err != nil {
		// The write also fails if the process has ended. The reason why the process ended is then a better error than the
		// broken pipe.
		select {
		case <-d.ended:
			err = d.reason()
		case <-time.After(d.patience.run):
			err = errors.New("the driver does not read its standard input")
		}
		return nil, nil, 0, err
	}
	return to, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.pending, q.ID)
	}, q.ID, nil
}

// reason returns why the driver will send no more responses. It returns nil if the driver can still respond.
func (d *Driver) reason() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// fail kills the driver and returns err, or the reason of an earlier failure.
func (d *Driver) fail(err error) error {
	d.mu.Lock()
	// The first error is the cause. Later errors only follow from the end of the process.
	if d.broken == nil && !d.closed {
		d.died = err
	}
	d.broken = cmp.Or(d.broken, err)
	err = d.broken
	d.mu.Unlock()
	d.process.kill()
	return err
}

// Died returns why the driver's process ended or was killed before Close. It returns nil if neither happened.
func (d *Driver) Died() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.died
}

// ask sends a request that has a single response, and waits for that response. If the response takes longer than
// within, ask kills the driver.
func (d *Driver) ask(ctx context.Context, within time.Duration, q question) (heard, error) {
	answers, forget, _, err := d.give(q)
	if err != nil {
		return heard{}, err
	}
	defer forget()
	select {
	// Without a response, ask kills the driver, because a later response would belong to no request.
	case h := <-answers:
		if h.Error != "" {
			return h, fmt.Errorf("%s: %s", q.Do, short(h.Error))
		}
		return h, nil
	case <-d.ended:
		return heard{}, d.reason()
	case <-time.After(within):
		return heard{}, d.fail(fmt.Errorf("the driver did not respond to the request %s within %v", q.Do, within))
	case <-ctx.Done():
		return heard{}, d.fail(context.Cause(ctx))
	}
}

// grain is the largest rounding error, in ns, that lockbench accepts in a driver's times. Some languages store times as
// floating-point numbers.
const grain = int64(time.Microsecond)

// checkClock returns an error if the driver's clock is not CLOCK_MONOTONIC. To be accepted, its reading must lie
// between the request and the response.
func (d *Driver) checkClock(ctx context.Context) error {
	asked := monotonic()
	h, err := d.ask(ctx, d.patience.start, question{Do: "clock"})
	if err != nil {
		return err
	}
	if off := max(asked-h.Now, h.Now-h.at); off > grain {
		return fmt.Errorf("the driver's clock is not CLOCK_MONOTONIC: it differs by at least %v", time.Duration(off))
	}
	return nil
}

// refusal wraps a driver's error so that it matches store.ErrConfig, because the driver cannot work with the given
// configuration.
type refusal struct{ error }

func (refusal) Is(target error) bool { return target == store.ErrConfig }
func (r refusal) Unwrap() error      { return r.error }

// Prepare makes the driver connect to its servers and checks its clock again. Its errors match store.ErrConfig.
func (d *Driver) Prepare(ctx context.Context, _ []string) error {
	q := question{
		Do: "open", Prefix: d.config.Prefix, TTL: d.config.TTL.Milliseconds(), Callers: d.config.Callers,
	}
	for _, node := range d.config.Nodes {
		at, single := node.Reach()
		if !single {
			return refusal{errors.New("a driver connects only to single servers, not to clusters")}
		}
		q.Redis = append(q.Redis, at.URL)
		// All nodes have the same client name, SkipVerify and certificates, so the request contains each of them only once.
		q.ClientName, q.SkipVerify = at.ClientName, at.SkipVerify
		q.TLSCA, q.TLSCert, q.TLSKey = absolute(at.CA), absolute(at.Cert), absolute(at.Key)
	}
	_, err := d.ask(ctx, d.patience.start, q)
	if err == nil {
		err = d.checkClock(ctx)
	}
	if err != nil {
		return refusal{err}
	}
	return nil
}

// absolute returns the absolute path of a file, because a driver may change its directory. It returns "" for "".
func absolute(file string) string {
	if path, err := filepath.Abs(file); err == nil && file != "" {
		return path
	}
	return file
}

// CPU returns the CPU time that the driver's process has used, in seconds; nil if it is not known.
func (d *Driver) CPU() *float64 { return d.process.cpu() }

// Close ends the driver. First it waits up to closePatience for calls that continue after the end of their contexts,
// because they may still obtain a lock that must be released. Then it requests the driver to exit, and kills it if it
// has not exited after another closePatience.
func (d *Driver) Close() error {
	d.mu.Lock()
	closed := d.closed
	d.closed = true
	d.mu.Unlock()
	if closed {
		return nil
	}
	waited := make(chan struct{})
	go func() { // ends when the driver does
		d.late.Wait()
		close(waited)
	}()
	select {
	case <-waited:
	case <-d.ended:
	case <-time.After(closePatience):
	}
	if d.reason() == nil {
		_, _, _, _ = d.give(question{Do: "close"}) // its input ends, too
	}
	d.process.end(closePatience)
	<-d.ended
	<-waited
	return nil
}
