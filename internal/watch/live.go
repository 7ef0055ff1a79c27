package watch

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
)

//go:embed live.js
var script string

// policy lets the page run its own scripts and fetch only its event stream.
var policy = html.Policy(html.Script, script) + "; connect-src 'self'; frame-ancestors 'none'"

const (
	mostReaders = 64                     // limit of concurrent requests, for the page and for the stream separately
	between     = 250 * time.Millisecond // minimum time between two frames for a browser
)

// live is the page that follows a run and finally turns into its report.
type live struct {
	ended chan struct{} // closed with the last frame

	mu     sync.Mutex
	seen   html.Live
	newest *frame
}

// frame is one state of the page. It is rendered once, when the first browser requests it. Without a browser, frames
// therefore cost nothing. A slow browser skips frames.
type frame struct {
	event string                 // seen or report
	part  func() ([]byte, error) // the HTML that is sent with the event
	page  func() ([]byte, error) // the whole page
	next  chan struct{}          // closed when a newer frame exists
}

func once(write func(io.Writer) error) func() ([]byte, error) {
	return sync.OnceValues(func() ([]byte, error) {
		var b bytes.Buffer
		err := write(&b)
		return b.Bytes(), err
	})
}

func newLive() *live {
	l := &live{ended: make(chan struct{})}
	l.newest = l.frame()
	return l
}

// frame returns a frame with the current state. The caller holds mu.
func (l *live) frame() *frame {
	now := l.seen
	now.Script = template.JS(script) // embedded, so it is safe
	return &frame{
		event: "seen", next: make(chan struct{}),
		part: once(func(w io.Writer) error { return html.WriteSeen(w, now) }),
		page: once(func(w io.Writer) error { return html.WriteLive(w, now) }),
	}
}

// update changes the state of the page and publishes it as a new frame.
func (l *live) update(change func(*html.Live)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.seen)
	l.show(l.frame())
}

func (l *live) show(f *frame) {
	close(l.newest.next)
	l.newest = f
}

// end publishes the report as the last frame.
func (l *live) end(report results.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	page := once(func(w io.Writer) error { return html.Write(w, []results.File{report}) })
	l.show(&frame{event: "report", next: make(chan struct{}), part: page, page: page})
	close(l.ended)
}

func (l *live) current() *frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest
}

// pages returns the handler of the page and of its event stream.
func (l *live) pages() http.Handler {
	paths := http.NewServeMux()
	paths.HandleFunc("/{$}", limited(l.page))
	paths.HandleFunc("/events", limited(l.events))
	return paths
}

// limited refuses a request with status 503 while mostReaders other requests are under way.
func limited(answer http.HandlerFunc) http.HandlerFunc {
	var readers atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		defer readers.Add(-1)
		if readers.Add(1) > mostReaders {
			http.Error(w, "too many pages are open; close another one", http.StatusServiceUnavailable)
			return
		}
		answer(w, r)
	}
}

func (l *live) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Cache-Control", "no-store")
	page, err := l.current().page()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(page) // an error means that the reader is gone
}

// events sends frames up to the last one. It stops earlier if the browser disconnects or does not accept a frame within
// patience.
func (l *live) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	for f := l.current(); l.send(w, f) == nil && f.event != "report"; f = l.current() {
		select {
		case <-f.next:
		case <-r.Context().Done():
			return
		}
		pause, stop := context.WithTimeout(r.Context(), between) // one frame for progress and figures
		select {
		case <-pause.Done():
		case <-l.ended:
		}
		stop()
	}
}

// send writes a frame as an event. JSON escapes the frame's line breaks, which would otherwise end the event's data.
func (l *live) send(w http.ResponseWriter, f *frame) error {
	page, err := f.part()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(string(page))
	if err != nil {
		return err
	}
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", f.event, encoded); err != nil {
		return err
	}
	return control.Flush()
}
