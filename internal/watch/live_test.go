package watch

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
)

// stream opens the page's stream of events at url. The function that it returns reads the next event.
func stream(t *testing.T, url string) func() (event, page string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	lines := bufio.NewReader(answer.Body)
	return func() (event, page string) {
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return "", ""
			}
			line = strings.TrimSuffix(line, "\n")
			if name, is := strings.CutPrefix(line, "event: "); is {
				event = name
			} else if data, is := strings.CutPrefix(line, "data: "); is {
				if err := json.Unmarshal([]byte(data), &page); err != nil {
					t.Error(err)
				}
				return event, page
			}
		}
	}
}

// The expected end of the session is computed when a run begins. Later calls of Progress in the same run must not
// change it.
func TestExpectedEndIsFixedDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watchers{live: newLive()}
		begun := time.Now()
		for second := range 5 {
			w.Progress(html.Progress{Run: 1, Runs: 2, Phase: fmt.Sprint(second)}, time.Minute)
			if end := w.live.seen.Now.End; !end.Equal(begun.Add(time.Minute)) {
				t.Errorf("after %d s the session ends at %v", second, end.Sub(begun))
			}
			time.Sleep(time.Second)
		}
		w.Progress(html.Progress{Run: 2, Runs: 2}, 30*time.Second)
		if end := w.live.seen.Now.End; !end.Equal(begun.Add(35 * time.Second)) {
			t.Errorf("in the second run the session ends at %v", end.Sub(begun))
		}
		if w.Progress(html.Progress{Run: 2, Runs: 2}, 0); !w.live.seen.Now.End.IsZero() {
			t.Error("an unknown end is known")
		}
	})
}

// browser is a client of the live page that counts the frames that it receives.
type browser struct {
	*httptest.ResponseRecorder
	frames atomic.Int64
}

func (b *browser) SetWriteDeadline(time.Time) error { return nil }

func (b *browser) Write(data []byte) (int, error) {
	b.frames.Add(1)
	return len(data), nil
}

// Each second brings a new phase and, a moment later, new figures. Both must reach the browser in one frame, because
// each frame costs the generator CPU time.
func TestOneFramePerSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Watchers{live: newLive()}
		ctx, stop := context.WithCancel(t.Context())
		b := &browser{ResponseRecorder: httptest.NewRecorder()}
		var reading sync.WaitGroup
		reading.Go(func() { w.live.events(b, httptest.NewRequest(http.MethodGet, "/events", nil).WithContext(ctx)) })
		report := recorded(t)
		const seconds = 5
		for range seconds {
			time.Sleep(time.Second)
			w.Progress(html.Progress{Phase: "measure"}, 0)
			time.Sleep(10 * time.Millisecond) // the engine sums the run up
			w.See(report, nil)
		}
		time.Sleep(time.Second)
		if frames := b.frames.Load(); frames != 1+seconds {
			t.Errorf("%d seconds made %d frames after the first", seconds, frames-1)
		}
		stop()
		reading.Wait()
	})
}

// Five browsers follow a run. Each must receive every new state and, at the end, the page that the report command would
// write.
func TestPageFollowsRunAndEndsAsReport(t *testing.T) {
	w, urls := open(t, Addresses{Live: "127.0.0.1:0"})
	w.Progress(html.Progress{Phase: "about to <begin>"}, 0)
	if status, body := ask(t, http.MethodGet, urls[0], ""); status != 200 ||
		!strings.Contains(body, "about to &lt;begin&gt;") || !strings.Contains(body, "<script>"+script+"</script>") {
		t.Errorf("%d %s", status, body)
	}
	var browsers []func() (string, string)
	for range 5 {
		next := stream(t, urls[0])
		if event, page := next(); event != "seen" || !strings.Contains(page, "about to &lt;begin&gt;") {
			t.Errorf("%s %s", event, page)
		}
		browsers = append(browsers, next)
	}
	report := recorded(t)
	w.See(report, []results.Wait{{Client: 4711, NS: 5e9}})
	for _, next := range browsers {
		if event, page := next(); event != "seen" || !strings.Contains(page, "4711") ||
			!strings.Contains(page, "<svg") || !strings.Contains(page, report.Runs[0].Strategy) {
			t.Errorf("%s %s", event, page)
		}
	}
	file := results.File{Name: "run.json", Report: report}
	var want bytes.Buffer
	if err := html.Write(&want, []results.File{file}); err != nil {
		t.Fatal(err)
	}
	w.End(file)
	for _, next := range browsers {
		if event, page := next(); event != "report" || page != want.String() {
			t.Errorf("%s: %d bytes, want %d", event, len(page), want.Len())
		}
		if event, _ := next(); event != "" {
			t.Errorf("after the report there is %s", event)
		}
	}
	if _, body := ask(t, http.MethodGet, urls[0], ""); body != want.String() {
		t.Error("who comes later does not get the report")
	}
}

// Three browsers request the live page's events and read nothing. Neither the run nor its end may wait for them.
func TestStalledBrowserDoesNotDelayRun(t *testing.T) {
	w, urls := open(t, Addresses{Live: "127.0.0.1:0"})
	host := strings.Trim(strings.TrimPrefix(urls[0], "http://"), "/")
	for range 3 {
		deaf, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer deaf.Close()
		if err := deaf.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprint(deaf, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	next := stream(t, urls[0])
	next()
	long := strings.Repeat("x", 8<<20) // more than the socket buffers hold for a client that reads nothing
	for i := range 20 {
		w.Progress(html.Progress{Phase: fmt.Sprint(i, long)}, 0)
	}
	w.Progress(html.Progress{Phase: "short"}, 0)
	for _, page := next(); !strings.Contains(page, ": short<"); _, page = next() {
		if page == "" {
			t.Fatal("a browser that reads lost its stream")
		}
	}
}

func TestStreamsAreBounded(t *testing.T) {
	w, urls := open(t, Addresses{Live: "127.0.0.1:0"})
	for range mostReaders {
		stream(t, urls[0])()
	}
	if status, _ := ask(t, http.MethodGet, urls[0]+"events", ""); status != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", status)
	}
	w.End(results.File{Report: recorded(t)})
}

// reader is a slow client: its Write blocks until the test lets it go on.
type reader struct {
	http.ResponseWriter
	got chan *byte // receives the address of the first byte written
	let chan struct{}
}

func (r reader) Write(b []byte) (int, error) {
	r.got <- &b[0]
	<-r.let
	return len(b), nil
}

// As many readers as mostReaders request the page at the same time. It must be rendered once, and one more request must
// be refused.
func TestPageIsRenderedOnceForAllReaders(t *testing.T) {
	pages := newLive().pages()
	got, let := make(chan *byte), make(chan struct{})
	var answers sync.WaitGroup
	made := map[*byte]bool{}
	for range mostReaders {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		answers.Go(func() { pages.ServeHTTP(reader{httptest.NewRecorder(), got, let}, request) })
		made[<-got] = true
	}
	refused := httptest.NewRecorder()
	pages.ServeHTTP(refused, httptest.NewRequest(http.MethodGet, "/", nil))
	close(let)
	answers.Wait()
	if len(made) != 1 || refused.Code != http.StatusServiceUnavailable {
		t.Errorf("it was made %d times, and one more reader got %d", len(made), refused.Code)
	}
}

// The page may run its own script and nothing else, and no page may frame it.
func TestPageAllowsOnlyItsOwnScript(t *testing.T) {
	if !strings.Contains(html.Script, "function arrange(") {
		t.Fatal("the script of every page is not embedded")
	}
	_, urls := open(t, Addresses{Live: "127.0.0.1:0"})
	answer, err := http.Get(urls[0]) //nolint:noctx // ours
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got := answer.Header.Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'", "script-src 'sha256-", "connect-src 'self'", "frame-ancestors 'none'",
	} {
		if !strings.Contains(got, want) || strings.Contains(got, "script-src 'unsafe") {
			t.Errorf("the policy is %q, without %s", got, want)
		}
	}
	if status, _ := ask(t, http.MethodGet, urls[0]+"events", "evil.example"); status != http.StatusForbidden {
		t.Errorf("the stream of frames for another name: %d", status)
	}
}
