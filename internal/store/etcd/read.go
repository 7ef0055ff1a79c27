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

// Read reads the counters of all members and adds them up. A member that does not answer has its
// last counts. etcd's byte counters are left out: they omit the frames of messages, so they are
// not comparable.
func (s *Server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	var all sync.WaitGroup
	problems := make([]error, len(s.members))
	for i, m := range s.members {
		all.Go(func() {
			process, got, err := s.metrics(ctx, m)
			if err == nil {
				m.counters.Enter(process, got)
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
	if answered == 0 { // counters may be unavailable on a live etcd
		if err := s.Ping(ctx); err != nil {
			return results.Reading{}, err
		}
	}
	reading := s.sum()
	reading.At = began.Add(time.Since(began) / 2)
	s.meter.Enter(&reading)
	return reading, nil
}

// sum adds up the counters of the members; the sum is unknown if one member never reported a
// counter.
func (s *Server) sum() results.Reading {
	var nodes []results.NodeReading
	for _, m := range s.members {
		one, _ := m.counters.Read()
		if m.own != nil {
			one.CPU = m.own.CPU()
		}
		nodes = append(nodes, results.NodeReading{Address: m.endpoint, Role: "member", Reading: one})
	}
	sum := store.Sum(nodes)
	if len(nodes) > 1 {
		sum.Nodes = nodes
	}
	return sum
}

// metricsTimeout limits one request for a member's counters.
const metricsTimeout = 3 * time.Second

// metrics reads the counters of a member's process over HTTP, which the sockets' counters do not include.
func (s *Server) metrics(ctx context.Context, m *member) (process string, r results.Reading, err error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.to.url(m.endpoint, "/metrics"), nil)
	if err != nil {
		return "", r, err
	}
	answer, err := s.http.Do(request)
	if err != nil {
		return "", r, fmt.Errorf("%w: read the counters of %s: %w", store.ErrUnreachable, m.endpoint, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, answer.Body)
		return "", r, fmt.Errorf("read the counters of %s: %s", m.endpoint, answer.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(needed(answer.Body))
	if err != nil {
		return "", r, fmt.Errorf("read the counters of %s: %w", m.endpoint, err)
	}
	process, r = reckon(families)
	return process, r, nil
}

// needed returns only the lines that are used, out of thousands.
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

// reckon extracts the counters: the answers for unary calls, and the received messages for streams,
// because each such message is a request. The process is told by its start, in seconds since 1970.
func reckon(families map[string]*dto.MetricFamily) (process string, r results.Reading) {
	value := func(name string) *float64 {
		for _, metric := range families[name].GetMetric() {
			v := metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			return &v
		}
		return nil
	}
	r = results.Reading{Commands: map[string]int64{}, CPU: value("process_cpu_seconds_total")}
	if started := value("process_start_time_seconds"); started != nil {
		process = fmt.Sprintf("%.2f", *started)
	}
	if memory := value("process_resident_memory_bytes"); memory != nil {
		r.Memory = int64(*memory)
	}
	for family, stream := range map[string]bool{"grpc_server_handled_total": false, "grpc_server_msg_received_total": true} {
		for _, metric := range families[family].GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if calls := int64(metric.GetCounter().GetValue()); calls > 0 && (labels["grpc_type"] != "unary") == stream {
				r.Commands[labels["grpc_method"]] += calls
			}
		}
	}
	return process, r
}
