package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// WriteHlog writes an HdrHistogram log, version 1.3: a line for each run and kind of duration,
// over the run's window. Its tag is STRATEGY.wait, .service, .handoff, .hold or .release; in
// a sweep STRATEGY.POINT.wait. The suffix -open marks what was seen of durations that had
// not ended, and -entered the ages at the opening of the window. Values are nanoseconds; by
// convention Interval_Max is milliseconds.
func WriteHlog(w io.Writer, r *results.Report) error {
	var b bytes.Buffer
	log := hdrhistogram.NewHistogramLogWriter(&b)
	if err := errors.Join(
		log.OutputComment("["+words.Dotted("lockbench", r.Tool.Version, "nanoseconds")+"]"),
		log.OutputLogFormatVersion(),
		log.OutputStartTime(r.Started.UnixMilli()),
		log.OutputLegend(),
	); err != nil {
		return fmt.Errorf("write the head of the log: %w", err)
	}
	runs := slices.Clone(r.Runs)
	slices.SortStableFunc(runs, func(a, b results.Run) int { return a.Started.Compare(b.Started) })
	for _, run := range runs {
		for _, d := range []struct {
			name string
			of   results.Distribution
		}{
			{"wait", run.Waiting.PerAcquisition}, {"service", run.Waiting.Service}, {"handoff", run.Speed.Handoff},
			{"hold", run.Speed.Hold}, {"release", run.Speed.Release},
		} {
			o, err := d.of.Observations()
			if err != nil {
				return fmt.Errorf("%s, round %d, %s: %w", run.Strategy, run.Round, d.name, err)
			}
			for i, h := range []*hdrhistogram.Histogram{o.Ended, o.Censored, o.Entered} {
				if h == nil {
					continue
				}
				h.SetTag(hlogTag(run) + "." + d.name + []string{"", "-open", "-entered"}[i])
				h.SetStartTimeMs(run.Started.UnixMilli())
				h.SetEndTimeMs(run.Started.UnixMilli() + run.WindowNS/1e6)
				if err := log.OutputIntervalHistogram(h); err != nil {
					return fmt.Errorf("%s, round %d, %s: %w", run.Strategy, run.Round, d.name, err)
				}
			}
		}
	}
	return jsonio.WriteText(w, "log", b.Bytes())
}

// hlogTag returns a run's tag; it replaces the separators of the log.
func hlogTag(r results.Run) string {
	tag := r.Strategy
	if r.Point != "" {
		tag += "." + r.Point
	}
	return strings.NewReplacer(",", ";", " ", ";", "\n", ";", "\r", ";").Replace(tag)
}
