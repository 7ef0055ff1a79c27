package watch

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open serves the pages of `at` until the test ends, and returns their URLs. It calls each function of set for each
// server before the server starts.
func open(t *testing.T, at Addresses, set ...func(*http.Server)) (*Watchers, []string) {
	t.Helper()
	w, err := Listen(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range w.servers {
		for _, change := range set {
			change(s.http)
		}
	}
	w.Serve(func(text string) { t.Error(text) })
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	var urls []string
	for _, s := range w.servers {
		urls = append(urls, s.URL)
	}
	return w, urls
}

// ask sends a request and returns the status and the body of the response. If host is not empty, it is the Host header.
func ask(t *testing.T, method, url, host string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		request.Host = host
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// By DNS rebinding a page of another site can send requests to loopback under its own host name and read the responses.
// Such requests must be refused.
func TestLoopbackServesOnlyLoopbackHosts(t *testing.T) {
	w, urls := open(t, Addresses{Metrics: "127.0.0.1:0"})
	w.See(recorded(t), nil)
	for host, want := range map[string]int{
		"": 200, "localhost": 200, "localhost:1": 200, "[::1]:9464": 200, "127.9.9.9": 200,
		"evil.example": 403, "evil.example:9464": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example:80": 403,
		"10.0.0.1": 403,
	} {
		status, body := ask(t, http.MethodGet, urls[0], host)
		if status != want || (status == 200) != strings.Contains(body, "lockbench_acquisitions_total") {
			t.Errorf("%q: %d, want %d", host, status, want)
		}
	}
	if status, _ := ask(t, http.MethodPost, urls[0], ""); status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", status)
	}
}

// DNS rebinding also reaches servers that listen on addresses other than loopback. A Host that is an IP address is
// safe, because no site can have it as its name.
func TestOnlyOwnHostNamesAreServed(t *testing.T) {
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	w, urls := open(t, Addresses{Metrics: "0.0.0.0:0", Live: "localhost:0"})
	w.See(recorded(t), nil)
	for _, url := range urls {
		_, port, _ := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/"))
		port, _, _ = strings.Cut(port, "/")
		everywhere := !strings.Contains(url, "127.0.0.1")
		for host, want := range map[string]bool{
			"localhost": true, "LOCALHOST:1": true, "127.0.0.1": true, "10.0.0.1:9464": everywhere, "[fd00::1]": everywhere,
			machine: everywhere, machine + ".evil.example": false, "evil.example:9464": false, "10.0.0.1.evil.example": false,
			"evil.localhost": false,
		} {
			status, body := ask(t, http.MethodGet, "http://127.0.0.1:"+port+"/metrics", host)
			if answered := status != http.StatusForbidden; answered != want {
				t.Errorf("%s as %q: %d %.200s", url, host, status, body)
			}
		}
	}
}

func TestPortsDefaultToLoopback(t *testing.T) {
	for address, want := range map[string]string{
		"0": "127.0.0.1", ":0": "127.0.0.1", "127.0.0.2:0": "127.0.0.2", "[::1]:0": "::1", "0.0.0.0:0": "0.0.0.0",
	} {
		parsed, err := ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		w, err := Listen(Addresses{Metrics: parsed})
		if err != nil {
			if strings.Contains(address, "::1") {
				continue // this machine has no IPv6
			}
			t.Fatal(err)
		}
		host, _, _ := net.SplitHostPort(w.servers[0].listener.Addr().String())
		if host == "::" {
			host = "0.0.0.0"
		}
		if host != want || w.servers[0].loopback == (want == "0.0.0.0") {
			t.Errorf("%s is at %s, loopback %v", address, host, w.servers[0].loopback)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

// If a port is in use, Listen returns an error with the flag's name and closes the ports that it bound before.
func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w, err := Listen(Addresses{Metrics: taken.Addr().String()})
	if err == nil || !strings.HasPrefix(err.Error(), "--metrics: ") || !strings.Contains(err.Error(), "in use") ||
		w.Any() {
		t.Errorf("%v, %v", err, w)
	}
	for _, wrong := range []string{"x", "1:2:3", "127.0.0.1", "99999", "host:99999", "host:http", ""} {
		if _, err := ParseAddress(wrong); err == nil {
			t.Errorf("%q is an address", wrong)
		}
	}
}

// A generator exports only its own metrics. At the end, generator 0 also gets the report that all generators share,
// which must not change its metrics.
func TestMergedReportIsNotCountedAgain(t *testing.T) {
	w, urls := open(t, Addresses{Metrics: "127.0.0.1:0"})
	own, all := recorded(t), recorded(t)
	own.Runs = own.Runs[:1]
	w.See(own, nil)
	_, before := ask(t, http.MethodGet, urls[0], "")
	w.End(results.File{Report: all})
	_, after := ask(t, http.MethodGet, urls[0], "")
	if after != before || !strings.Contains(after, "acquisitions_total{") {
		t.Errorf("at first %s\nin the end %s", before, after)
	}
}

// dial sends request to the server at url over a new connection and returns the connection.
func dial(t *testing.T, url, request string) net.Conn {
	t.Helper()
	at := strings.TrimPrefix(url, "http://")
	c, err := net.Dial("tcp", at[:strings.Index(at, "/")])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, _ = io.WriteString(c, request) // the server may have closed a refused connection already
	return c
}

// A client announces a body but never sends it. The server must refuse the request and close the connection.
func TestMissingBodyDoesNotKeepConnection(t *testing.T) {
	_, urls := open(t, Addresses{Metrics: "127.0.0.1:0"})
	for _, request := range []string{
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n",
		"GET /metrics HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 9\r\n\r\n",
	} {
		c := dial(t, urls[0], request)
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 4") {
			t.Errorf("%v after %q", err, answer)
		}
	}
}

// The test opens twice as many connections as mostConnections and leaves them idle before, within or after a request.
// Another reader must still be served, and the server must close the surplus connections.
func TestIdleConnectionsDoNotBlockReaders(t *testing.T) {
	const request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
	patient := func(s *http.Server) { s.ReadHeaderTimeout, s.IdleTimeout = time.Hour, time.Hour }
	for _, first := range []string{"", request, "GET / HTTP/1.1\r\n"} {
		w, urls := open(t, Addresses{Live: "127.0.0.1:0"}, patient)
		for range 2 * mostConnections {
			c := dial(t, urls[0], first)
			if first == request { // read the response, so that the connection becomes idle
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = answer.Body.Close()
			}
		}
		if status, _ := ask(t, http.MethodGet, urls[0], ""); status != http.StatusOK {
			t.Errorf("after %q a reader gets %d", first, status)
		}
		poll.Until(t, "those that have given way are closed", func() bool {
			s := w.servers[0]
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.open <= mostConnections
		})
	}
}
