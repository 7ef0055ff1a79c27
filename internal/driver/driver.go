// Package driver lets programs in any language run the clients of a lock, by the protocol in docs/DRIVERS.md. The
// package does not trust their output.
package driver

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

// patience has the time limits of a driver: start for a response to hello, clock and open, run between two reports of a
// run, and stop until its last client has stopped.
type patience struct{ start, run, stop time.Duration }

// heard is a response and the time when lockbench read it, in ns of CLOCK_MONOTONIC.
type heard struct {
	answer
	at int64
}

// Hello is how a driver describes itself in its response to hello. Its texts are safe to print.
type Hello struct {
	Name, Version, Runtime string
	Info                   strategies.Info
}

// launched starts a driver, requests its Hello and checks its clock. If that fails, it ends the driver.
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

// unknown returns the Info of a driver that has not yet sent its Hello.
func unknown() strategies.Info {
	return strategies.Info{
		Name: "exec", Capacity: 1, Nodes: 1, BlackBox: true, Driver: true,
		NoCluster: "a driver connects only to single servers", Connects: ways(),
		Limits: []strategies.Limit{
			{Check: "closed", Because: "a driver's process ends with its Locker"},
			{Check: "connections", Because: "a driver does not declare its connections"},
		},
	}
}

// ways returns the kinds of connections that a driver may support in addition to plain TCP.
func ways() []string { return []string{"unix", "tls"} }

// introduced checks the response to hello and converts it to a Hello.
func introduced(a answer) (Hello, error) {
	if a.Protocol != Version {
		return Hello{}, fmt.Errorf("it speaks version %d of the protocol, lockbench speaks version %d", a.Protocol, Version)
	}
	h := Hello{Name: short(a.Name), Version: short(a.Version), Runtime: short(a.Runtime)}
	h.Info = unknown()
	info := &h.Info
	info.Caveat, info.Format, info.Counts, info.MaxInstances = short(a.Caveat), short(a.Format), a.Counts, a.MostRuns
	info.Connects = slices.DeleteFunc(ways(), func(way string) bool { return !slices.Contains(a.Connects, way) })
	info.Summary = strings.Join(strings.Fields(h.Name+" "+h.Version+" "+h.Runtime), " ")
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
		return h, fmt.Errorf("its capacity %d, nodes %d or max_instances %d is out of range: capacity must be from 0 to %d, "+
			"nodes from 0 to %d, and max_instances 0 or more", info.Capacity, info.Nodes, a.MostRuns, mostHolders, mostNames)
	}
	for _, claim := range a.Claims {
		made, known := map[string]*bool{
			"exclusion": &info.Claims.Exclusion, "recovery": &info.Claims.Recovery, "fifo": &info.Claims.FIFO,
			"bounded": &info.Claims.Bounded, "fencing": &info.Claims.Fencing, "watchdog": &info.Claims.Watchdog,
		}[claim]
		if !known {
			return h, fmt.Errorf("it claims %s, which is not a guarantee that lockbench knows", short(claim))
		}
		*made = true
	}
	if len(a.Keys) > mostNames || len(a.Keeps) > mostNames {
		return h, fmt.Errorf("it names more than %d keys", mostNames)
	}
	for _, key := range append(a.Keys, a.Keeps...) {
		if !strings.Contains(key, "{key}") || len(key) > longestText {
			return h, fmt.Errorf("its key name %s does not contain {key}, or is longer than %d bytes", short(key), longestText)
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
	err := d.hear(bufio.NewReaderSize(d.process.out, longestLine))
	if errors.Is(err, io.EOF) {
		err = errors.New(d.process.ending())
		if lines := strings.Split(strings.TrimSpace(d.process.log.String()), "\n"); lines[0] != "" {
			err = fmt.Errorf("%w: %s", err, short(lines[len(lines)-1]))
		}
	}
	_ = d.fail(err)
	close(d.ended)
}

func (d *Driver) hear(lines *bufio.Reader) error {
	for {
		line, err := lines.ReadSlice('\n')
		h := heard{at: monotonic()}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("it writes a line of more than %d bytes", longestLine)
		case err != nil:
			return io.EOF // also if the pipe was closed
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		if err := json.Unmarshal(line, &h.answer); err != nil {
			return fmt.Errorf("it writes a line that is not a message of the protocol: %s", short(string(bytes.TrimSpace(line))))
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
			return fmt.Errorf("its response has the id %d, which no open request has", h.ID)
		}
		select {
		case to <- h:
		case <-time.After(runPatience):
			return fmt.Errorf("it sends more responses to the request %d than the protocol allows", h.ID)
		}
	}
}

// lose closes the Lost channel of the lease that the request acquire obtained.
func (d *Driver) lose(acquire int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	lost, watched := d.watched[acquire]
	if !watched {
		return fmt.Errorf("it reports that the lease of the request %d is lost, but did not declare it as watched", acquire)
	}
	select {
	case <-lost: // the driver repeats the report
	default:
		close(lost)
	}
	return nil
}

// give sends a request. It returns its ID, the channel of its responses, and a function that unregisters that channel.
func (d *Driver) give(q question) (answers <-chan heard, forget func(), id int64, err error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.next++
	q.ID = d.next
	text, err := json.Marshal(q)
	if err != nil {
		return nil, nil, 0, err
	}
	to := make(chan heard, 16)
	d.mu.Lock()
	d.pending[q.ID] = to
	d.mu.Unlock()
	_ = d.process.in.SetWriteDeadline(time.Now().Add(d.patience.run)) // a pipe can have one
	if _, err := d.process.in.Write(append(text, '\n')); err != nil {
		select {
		case <-d.ended:
			err = d.reason()
		case <-time.After(d.patience.run):
			err = errors.New("it does not read its standard input")
		}
		return nil, nil, 0, err
	}
	return to, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.pending, q.ID)
	}, q.ID, nil
}

// reason returns why the driver will send no more responses; nil if it still can.
func (d *Driver) reason() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// fail kills the driver and returns err, or the reason of an earlier failure.
func (d *Driver) fail(err error) error {
	d.mu.Lock()
	if d.broken == nil && !d.closed {
		d.died = err
	}
	d.broken = cmp.Or(d.broken, err)
	err = d.broken
	d.mu.Unlock()
	d.process.kill()
	return err
}

// Died returns why the process ended or was killed before Close; nil if it was not.
func (d *Driver) Died() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.died
}

// ask sends a request that has a single response, and waits for that response. If none arrives in time, it kills the
// driver.
func (d *Driver) ask(ctx context.Context, within time.Duration, q question) (heard, error) {
	answers, forget, _, err := d.give(q)
	if err != nil {
		return heard{}, err
	}
	defer forget()
	select {
	case h := <-answers:
		if h.Error != "" {
			return h, fmt.Errorf("%s: %s", q.Do, short(h.Error))
		}
		return h, nil
	case <-d.ended:
		return heard{}, d.reason()
	case <-time.After(within):
		return heard{}, d.fail(fmt.Errorf("it did not respond to the request %s within %v", q.Do, within))
	case <-ctx.Done():
		return heard{}, d.fail(context.Cause(ctx))
	}
}

// grain is the largest rounding error of a driver's times in ns. Some languages store times as floating point numbers.
const grain = int64(time.Microsecond)

// checkClock returns an error if the driver's clock is not CLOCK_MONOTONIC: its reading must lie between the request
// and the response.
func (d *Driver) checkClock(ctx context.Context) error {
	asked := monotonic()
	h, err := d.ask(ctx, d.patience.start, question{Do: "clock"})
	if err != nil {
		return err
	}
	if off := max(asked-h.Now, h.Now-h.at); off > grain {
		return fmt.Errorf("its clock is not CLOCK_MONOTONIC: it differs by at least %v", time.Duration(off))
	}
	return nil
}

// refusal marks an error as a store.ErrConfig: the driver cannot work with this configuration.
type refusal struct{ error }

func (refusal) Is(target error) bool { return target == store.ErrConfig }
func (r refusal) Unwrap() error      { return r.error }

// Prepare connects the driver to its servers.
func (d *Driver) Prepare(ctx context.Context, _ []string) error {
	q := question{
		Do: "open", Prefix: d.config.Prefix, TTL: d.config.TTL.Milliseconds(), Callers: d.config.Callers,
	}
	for _, node := range d.config.Nodes {
		at, single := node.Reach()
		if !single {
			return refusal{errors.New("a driver connects only to single servers")}
		}
		q.Redis = append(q.Redis, at.URL)
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

// absolute returns the absolute path of a file, because a driver may run in another directory. It keeps "".
func absolute(file string) string {
	if path, err := filepath.Abs(file); err == nil && file != "" {
		return path
	}
	return file
}

// CPU returns the CPU time that the driver's process has used, in seconds; nil if it is not known.
func (d *Driver) CPU() *float64 { return d.process.cpu() }

// Close ends the driver. First it waits up to closePatience for calls that continue after the end of their contexts,
// because they may still obtain a lock that must be released. Then it waits as long for the driver to exit by itself,
// and kills it if it does not.
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
