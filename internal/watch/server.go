// Package watch shows runs to Prometheus, an OTLP receiver and browsers while they are measured.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
)

// patience limits the time for one response. A slower reader is disconnected.
const patience = 5 * time.Second

// parting is how long responses under way may still take after close is called.
const parting = time.Second

// mostConnections limits the open connections of browsers and scrapers, because each one takes a file descriptor that
// the clients of the run may need.
const mostConnections = 256

// Addresses holds the addresses to listen on, as ParseAddress returns them; "" means none. Metrics may also be OTLP.
type Addresses struct{ Metrics, Live string }

// ParseAddress parses a port or host:port. A port alone means that port on loopback.
func ParseAddress(text string) (string, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		host, port = "", text
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("%q is neither a port, such as 9464, nor an address, such as 127.0.0.1:9464", text)
	}
	return net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port), nil
}

// ParseMetrics parses the value of --metrics: OTLP, or an address that ParseAddress accepts.
func ParseMetrics(text string) (string, error) {
	if text == OTLP {
		return OTLP, nil
	}
	address, err := ParseAddress(text)
	if err != nil {
		return "", fmt.Errorf("%w, nor %s", err, OTLP)
	}
	return address, nil
}

// Watchers are the endpoints that show a run while it is measured. The zero value has none.
type Watchers struct {
	servers []*endpoint
	metrics *metrics
	to      receiver
	pusher  pusher // nil unless the metrics are pushed
	live    *live
}

// Listen binds the ports. Serve then starts to respond and to push. Each error names its flag. If Listen fails, it
// leaves no port bound.
func Listen(at Addresses) (*Watchers, error) {
	w := &Watchers{}
	var problems []error
	take := func(flag, address string, pages http.Handler, path string) {
		s, err := listen(flag, address, pages)
		if err != nil {
			problems = append(problems, fmt.Errorf("--%s: %w", flag, err))
			return
		}
		s.URL = "http://" + s.listener.Addr().String() + path
		w.servers = append(w.servers, s)
	}
	switch at.Metrics {
	case "":
	case OTLP:
		var err error
		if w.to, w.pusher, err = openPusher(); err != nil {
			problems = append(problems, err)
		}
		w.metrics = newMetrics()
	default:
		w.metrics = newMetrics()
		take("metrics", at.Metrics, w.metrics.pages(), "/metrics")
	}
	if at.Live != "" {
		w.live = newLive()
		take("live", at.Live, w.live.pages(), "/")
	}
	if err := errors.Join(problems...); err != nil {
		return &Watchers{}, errors.Join(err, w.Close())
	}
	return w, nil
}

// Serve starts to respond to requests and to push metrics. Close ends both. Serve returns a line for each flag, with
// the address at which the data of that flag are shown. It calls warn if the receiver does not accept the metrics.
func (w *Watchers) Serve(warn func(string)) (places []string) {
	if w.pusher != nil {
		w.pusher.start(w.metrics, warn)
		places = append(places, fmt.Sprintf("--metrics: %s to %s every %v", OTLP, w.to.address, w.to.interval))
	}
	for _, s := range w.servers {
		s.serving.Go(func() { s.failed = s.http.Serve(s.listener) })
		place := fmt.Sprintf("--%s: %s", s.flag, s.URL)
		if !s.loopback {
			place += ", for every client that can reach this machine"
		}
		places = append(places, place)
	}
	return places
}

// Any reports whether the runs are shown anywhere.
func (w *Watchers) Any() bool { return len(w.servers) > 0 || w.pusher != nil }

// See shows the report so far and the open waits. The caller must not change the report afterwards.
func (w *Watchers) See(report *results.Report, waiting []results.Wait) {
	if w.metrics != nil {
		w.metrics.last.Store(&seen{report, waiting})
	}
	if w.live != nil {
		w.live.update(func(l *html.Live) { l.Report, l.Waiting = report, waiting })
	}
}

// Progress shows the progress of the session. remaining is the expected time from the beginning of the current run to
// the end of the session; 0 means unknown.
func (w *Watchers) Progress(now html.Progress, remaining time.Duration) {
	if w.live != nil {
		w.live.update(func(l *html.Live) {
			now.End = l.Now.End
			if now.Run != l.Now.Run || now.Runs != l.Now.Runs {
				now.End = time.Now().Add(remaining)
			}
			if remaining == 0 {
				now.End = time.Time{}
			}
			l.Now = now
		})
	}
}

// End shows the whole report in browsers. Metrics keep their last values, because the merged report of several
// generators includes figures that the other generators already export.
func (w *Watchers) End(report results.File) {
	if w.live != nil {
		w.live.end(report)
	}
}

// Close pushes the last figures, stops the servers, and waits until they have stopped.
func (w *Watchers) Close() error {
	var problems []error
	if w.pusher != nil {
		w.pusher.close()
	}
	for _, s := range w.servers {
		problems = append(problems, s.close())
	}
	return errors.Join(problems...)
}

// endpoint is an HTTP server at the address of one flag.
type endpoint struct {
	flag, URL string
	loopback  bool
	names     []string // host names that a request may use
	listener  net.Listener
	http      *http.Server
	serving   sync.WaitGroup
	failed    error
	answering sync.RWMutex // locked for reading by each request under way

	mu   sync.Mutex
	open int        // number of connections
	idle []net.Conn // idle connections, the longest idle first
}

// listen binds an address and returns its endpoint, which does not serve yet.
func listen(flag, address string, pages http.Handler) (*endpoint, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &endpoint{flag: flag, listener: listener, names: []string{"localhost"}}
	at, err := netip.ParseAddrPort(listener.Addr().String())
	s.loopback = err == nil && at.Addr().IsLoopback()
	host, _, _ := net.SplitHostPort(address) // valid: net.Listen accepted it
	machine, _ := os.Hostname()
	if s.loopback {
		machine = ""
	}
	for _, name := range []string{host, machine} {
		if _, err := netip.ParseAddr(name); err != nil && name != "" && !s.named(name) {
			s.names = append(s.names, name)
		}
	}
	s.http = &http.Server{
		Handler: s.guard(pages), ConnState: s.count,
		ReadHeaderTimeout: patience, WriteTimeout: patience, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return s, nil
}

// count tracks the connections. If there are more than mostConnections, it closes the connection that has been idle
// longest, so that a client with many idle connections cannot lock out other readers.
func (s *endpoint) count(c net.Conn, now http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.idle, c); at >= 0 {
		s.idle = slices.Delete(s.idle, at, at+1)
	}
	switch now {
	case http.StateNew, http.StateIdle:
		s.idle = append(s.idle, c)
	case http.StateClosed:
		s.open--
	}
	if now != http.StateNew {
		return
	}
	if s.open++; s.open > mostConnections {
		_ = s.idle[0].Close()
		s.idle = s.idle[1:]
	}
}

// guard refuses requests that have a body or a method other than GET and HEAD. It also prevents DNS rebinding, in which
// a page of another site reads this server through a name that the site resolves to this machine. Therefore the Host of
// a request must be a name or an address of this machine.
func (s *endpoint) guard(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.answering.TryRLock() {
			http.Error(w, "lockbench is ending", http.StatusServiceUnavailable)
			return
		}
		defer s.answering.RUnlock()
		if r.ContentLength != 0 { // otherwise the server would wait for the body without a limit
			_ = http.NewResponseController(w).SetReadDeadline(time.Now())
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !s.named(r.Host):
			http.Error(w, fmt.Sprintf("the URL's host must be an IP address or one of these: %s; --%s NAME:PORT adds a name",
				words.And(s.names), s.flag), http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		case r.ContentLength != 0:
			http.Error(w, "requests must have no body", http.StatusBadRequest)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// named reports whether the host of a request is an allowed name of this machine or an IP address, which DNS rebinding
// cannot use. An endpoint on loopback accepts only loopback addresses.
func (s *endpoint) named(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return address.IsLoopback() || !s.loopback
	}
	return slices.ContainsFunc(s.names, func(name string) bool { return strings.EqualFold(name, host) })
}

// close stops the server when the responses under way are complete, or after parting at the latest.
func (s *endpoint) close() error {
	within, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	s.mu.Lock()
	for _, c := range s.idle { // Shutdown would wait for the first request on new connections
		_ = c.Close()
	}
	s.mu.Unlock()
	if s.http.Shutdown(within) != nil {
		_ = s.http.Close() // parting is over: cut off the responses under way
	}
	_ = s.listener.Close() // needed if Serve was never called
	s.serving.Wait()
	s.answering.Lock() // waits for the requests under way and refuses new ones
	if s.failed != nil && !errors.Is(s.failed, http.ErrServerClosed) {
		return fmt.Errorf("--%s: %w", s.flag, s.failed)
	}
	return nil
}
