package etcd

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// counted is what a member counts, as it tells at /metrics.
type counted struct {
	started  float64 // when its process was, in seconds since 1970
	commands map[string]int64
	cpu      *float64
	memory   int64
}

// Read takes one reading of all members' counters, and adds them up. A member that does not
// answer stands with what it had counted. What etcd counts as bytes are messages without
// their frames, which is not what others count, and so is left out.
func (s *Server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	var all sync.WaitGroup
	problems := make([]error, len(s.members))
	for i, m := range s.members {
		all.Go(func() {
			got, err := s.metrics(ctx, m)
			if err == nil {
				m.counters.enter(got)
			}
			problems[i] = err
		})
	}
	all.Wait()
	answered := 0
	for _, problem := range problems {
		if problem == nil {
			answered++
		}
	}
	if answered == 0 { // it may not tell, and be there
		if err := s.Ping(ctx); err != nil {
			return results.Reading{}, err
		}
	}
	reading := results.Reading{At: began.Add(time.Since(began) / 2), Observer: s.observed.counts()}
	s.sum(&reading)
	reading.RoundTrips, reading.ClientBytesOut, reading.ClientBytesIn = reading.Observer.RoundTrips, reading.Observer.BytesOut, reading.Observer.BytesIn
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.traffic {
		reading.RoundTrips += t.Requests()
		reading.ClientBytesOut += t.Written()
		reading.ClientBytesIn += t.Read()
	}
	return reading, nil
}

// sum adds up what the members have counted; what one of them has never told is not known of
// all.
func (s *Server) sum(reading *results.Reading) {
	cpu, commands := 0.0, map[string]int64{}
	known, timed := true, true
	for _, m := range s.members {
		got, ok := m.counters.read()
		known = known && ok
		for command, calls := range got.commands {
			commands[command] += calls
		}
		reading.Memory += got.memory
		one := got.cpu
		if m.own != nil {
			one = m.counters.own(m.own.CPU())
		}
		if timed = timed && one != nil; timed {
			cpu += *one
		}
		if len(s.members) > 1 {
			reading.Nodes = append(reading.Nodes, results.NodeReading{
				Address: m.endpoint, Role: "member", Reading: results.Reading{Commands: got.commands, CPU: one, Memory: got.memory},
			})
		}
	}
	if known {
		reading.Commands = commands
	}
	if timed {
		reading.CPU = &cpu
	}
}

// metricsTimeout is how long a member may take to tell.
const metricsTimeout = 3 * time.Second

// metrics asks a member. That goes over HTTP, and is no part of what is counted at the
// sockets.
func (s *Server) metrics(ctx context.Context, m *member) (counted, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.to.url(m.endpoint, "/metrics"), nil)
	if err != nil {
		return counted{}, err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return counted{}, fmt.Errorf("%w: read the counters of %s: %w", store.ErrUnreachable, m.endpoint, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer.Body)
		return counted{}, fmt.Errorf("read the counters of %s: %s", m.endpoint, answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(needed(answer.Body))
	if err != nil {
		return counted{}, fmt.Errorf("read the counters of %s: %w", m.endpoint, err)
	}
	return reckon(families), nil
}

// needed are the lines that are read of a member's thousands.
func needed(body io.Reader) io.Reader {
	var kept bytes.Buffer
	for lines := bufio.NewScanner(body); lines.Scan(); {
		line := lines.Bytes()
		for _, begins := range []string{"process_", "grpc_server_handled_total", "grpc_server_msg_received_total"} {
			if bytes.HasPrefix(bytes.TrimPrefix(line, []byte("# TYPE ")), []byte(begins)) {
				kept.Write(line)
				kept.WriteByte('\n')
			}
		}
	}
	return &kept
}

// reckon picks the counters: of calls that are answered once how many were, of streams how
// many messages came, as each is a request.
func reckon(families map[string]*dto.MetricFamily) counted {
	value := func(name string) *float64 {
		for _, metric := range families[name].GetMetric() {
			v := metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			return &v
		}
		return nil
	}
	c := counted{commands: map[string]int64{}, cpu: value("process_cpu_seconds_total")}
	if started := value("process_start_time_seconds"); started != nil {
		c.started = *started
	}
	if memory := value("process_resident_memory_bytes"); memory != nil {
		c.memory = int64(*memory)
	}
	for family, stream := range map[string]bool{"grpc_server_handled_total": false, "grpc_server_msg_received_total": true} {
		for _, metric := range families[family].GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if calls := int64(metric.GetCounter().GetValue()); calls > 0 && (labels["grpc_type"] != "unary") == stream {
				c.commands[labels["grpc_method"]] += calls
			}
		}
	}
	return c
}
