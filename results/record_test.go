package results

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEveryFieldIsAdded adds two full runs, and a full run to an empty one. It fails if a field of a sum is empty that
// is not listed in left.
func TestEveryFieldIsAdded(t *testing.T) {
	t.Parallel()
	// These fields may be empty in the sum: Merge sets them, only a single process can observe them, or only certain
	// servers or workloads have them.
	left := []string{
		"Run.Strategy", "Run.Point", "Run.Round", "Run.Order", "Run.Seed", "Run.Started", "Run.Failure", "Run.Invalid",
		"Run.Labels", "Run.Herd", "Run.Parts", "Run.Faults", "Run.Server.Whole", "Run.Speed.Handoff", "Run.Speed.Stall",
		"Run.Speed.Gap", "Run.Fairness.Starved",
		"Run.Fairness.WorkingSet", "Run.Fairness.ReacquireDistance", "Run.Fairness.Overtaken",
		"Run.Fairness.PassesWithin", "Run.Fairness.LargestBypass",
		"Run.Safety.LostUpdates", "Run.Record.Keys", "Run.Record.Contended",
		"Run.Record.Leases", "Run.Record.Compared",
		"Run.Generator.DriverCPUSeconds",
		"Run.Server.Window.OtherTraffic", "Run.Server.Window.Own", "Run.TimeAccounting.Balanced", "Run.Timeline",
	}
	full := func() (r Run) {
		fill(reflect.ValueOf(&r).Elem())
		r.Server.Window.Own = nil // it would be all that was counted
		return r
	}
	empty := Run{}
	// With these values the empty run keeps every sum known. Where Add takes the smaller of two values, they also keep the
	// result from being 0.
	empty.Fairness = Fairness{AcquisitionsMin: 1}
	empty.Record = Record{Keys: 1, Increments: new(int64), WithoutTurn: new(int64)}
	whole := full()
	whole.Add(full())
	whole.Compute()
	other := empty
	other.Add(full())
	other.Compute()
	other.Server.Window = whole.Server.Window // because an empty run has no counts at its sockets
	for _, sum := range []Run{whole, other} {
		for _, name := range dropped(reflect.ValueOf(sum), "Run") {
			if !slices.ContainsFunc(left, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				t.Errorf("nothing comes of %s", name)
			}
		}
	}
}

// fill sets v to a value other than zero. In a struct it fills every exported field, and in a slice one element.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if d, ok := reflect.TypeAssert[*Distribution](v.Addr()); ok {
			*d = Describe(Observations{Ended: Histogram{{7, 60}}, Open: Histogram{{9, 1}}}, &Bound{NS: 9})
			d.MeanNS = new(7.0)
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64, reflect.Float64:
		v.Set(reflect.ValueOf(20).Convert(v.Type()))
	}
}

// dropped returns the names of the fields of v, at any depth, that are empty. name is the name of v.
func dropped(v reflect.Value, name string) []string {
	switch {
	case v.Kind() == reflect.Map:
		return nil
	case v.IsZero(), v.Kind() == reflect.Slice && v.Len() == 0:
		return []string{name}
	case v.Kind() == reflect.Pointer:
		return dropped(v.Elem(), name)
	case v.Kind() == reflect.Slice:
		return dropped(v.Index(0), name)
	case v.Kind() != reflect.Struct:
		return nil
	}
	if _, ok := reflect.TypeAssert[Distribution](v); ok {
		return nil
	}
	var names []string
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			names = append(names, dropped(v.Field(i), name+"."+v.Type().Field(i).Name)...)
		}
	}
	return names
}

// TestAddWeighsAttempts checks that the attempts per acquisition are known although a generator without leases did not
// count attempts. If a generator with leases did not count them, they must be unknown.
func TestAddWeighsAttempts(t *testing.T) {
	t.Parallel()
	run := func(granted int64, attempts *int64) Run {
		return Run{Record: Record{Granted: granted, Attempts: attempts}, Speed: Speed{Acquisitions: granted}}
	}
	for name, c := range map[string]struct {
		one, two Run
		want     *float64
	}{
		"both know":             {run(100, new(int64(100))), run(300, new(int64(600))), new(1.75)},
		"one had nothing":       {run(100, new(int64(100))), run(0, nil), new(1.0)},
		"the other had nothing": {run(0, nil), run(100, new(int64(100))), new(1.0)},
		"one does not know":     {run(100, new(int64(100))), run(1, nil), nil},
		"neither had something": {run(0, nil), run(0, nil), nil},
	} {
		c.one.Add(c.two)
		c.one.Compute()
		if diff := cmp.Diff(c.want, c.one.Effort.Attempts); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAddDoesNotOverflow checks the mean window of two runs whose product of clients and window exceeds int64.
func TestAddDoesNotOverflow(t *testing.T) {
	t.Parallel()
	hours := int64(3 * time.Hour)
	sum := Run{WindowNS: hours, Record: Record{Clients: 1e6}}
	sum.Add(Run{WindowNS: hours + 8, Record: Record{Clients: 1e6}})
	if sum.WindowNS != hours+4 {
		t.Errorf("the mean of 3 h and 3 h + 8 ns is %v", time.Duration(sum.WindowNS))
	}
}

// TestSumEqualsOneRecording checks that the sum of the two halves of a recording has the same figures as the whole.
func TestSumEqualsOneRecording(t *testing.T) {
	t.Parallel()
	var halves [2]Distribution
	var whole Observations
	for i := range halves {
		var half Observations
		h := NewHistogram()
		for n := range int64(300) {
			if err := h.RecordValue((n + 1) * 1_000_003 * int64(i+1)); err != nil {
				t.Fatal(err)
			}
		}
		half.Ended = Counted(h)
		longest := &Bound{NS: 300 * 1_000_003}
		if i == 1 {
			half.Entered, half.Open = Histogram{{4e8, 1}}, Histogram{{9e8, 1}}
			longest = &Bound{NS: 9e8, AtLeast: true}
		}
		halves[i] = Describe(half, longest)
		halves[i].MeanNS = new(150.5 * 1_000_003 * float64(i+1))
		whole.Ended = whole.Ended.Plus(half.Ended)
		whole.Entered, whole.Open = half.Entered, half.Open
	}
	want := Describe(whole, &Bound{NS: 9e8, AtLeast: true})
	want.MeanNS = new((*halves[0].MeanNS + *halves[1].MeanNS) / 2)
	got := Sum(halves[:]...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-one recording +two put together:\n%s", diff)
	}
	if diff := cmp.Diff(want.P90, got.Survival().Quantile(0.9)); diff != "" {
		t.Errorf("p90: -want +got:\n%s", diff)
	}
}

// TestFieldSums adds a run whose numbers are all 5 to a run whose numbers are all 3. The test lists the fields whose
// sum must be 5, 4 or 3. Every other sum must be 8 or unknown.
func TestFieldSums(t *testing.T) {
	t.Parallel()
	want := map[int64][]string{
		5: { // the larger
			"Fairness.AcquisitionsMax", "Fairness.LongestWait.NS", "Generator.OtherCPU",
			"Generator.SchedulingP99", "Generator.Steal", "Generator.StoodStill", "Generator.TimerOvershoot",
			"Record.UncertaintyNS", "Safety.MaxHolders", "Server.Peak.Clients", "Server.Peak.MemoryBytes",
			"Server.Peak.Subscriptions", "Server.Window.IdleCPU", "TimeAccounting.WorstPercent",
		},
		4: {"WindowNS"}, // the mean by clients
		3: { // the smaller
			"Fairness.AcquisitionsMin", "Generator.MachineIdle",
			// These fields keep the value of the first run: it is the same in both runs, both runs read it from the same
			// servers, or Compute sets it later.
			"Effort.Attempts", "Effort.Futile", "Effort.WakeUps", "Fairness.Jain", "Fairness.Starved",
			"Order", "Record.Keys", "Round", "Seed",
			"Server.Window.BusPublished", "Server.Window.BusReceived", "Server.Window.BytesIn",
			"Server.Window.BytesOut",
			"Server.Window.CPU", "Server.Window.Calls", "Server.Window.Evictions", "Server.Window.IOThreads",
			"Server.Window.Restarts", "Server.Window.RoleChanges",
			"Server.Window.MainCPU", "Server.Window.Seconds", "Server.Window.WALBytes", "Speed.Gap", "Speed.HoldAsked",
			"Speed.PerSecond", "Speed.ServedPerSecond", "Speed.Utilisation",
		},
	}
	all := func(n int64) (r Run) {
		fill(reflect.ValueOf(&r).Elem())
		r.Server.Window.Own = nil
		numbers(reflect.ValueOf(&r).Elem(), "", func(_ string, v reflect.Value) {
			v.Set(reflect.ValueOf(n).Convert(v.Type()))
		})
		return r
	}
	sum, got := all(3), map[int64][]string{}
	sum.Add(all(5))
	numbers(reflect.ValueOf(&sum).Elem(), "", func(name string, v reflect.Value) {
		n := v.Convert(reflect.TypeFor[int64]()).Int()
		if n != 8 && n != 0 {
			got[n] = append(got[n], name)
		}
	})
	for n := range got {
		slices.Sort(got[n])
		slices.Sort(want[n])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got: %s", diff)
	}
}

// numbers calls visit with each number in v and its name. It skips distributions, histograms and lists. name is the
// name of v.
func numbers(v reflect.Value, name string, visit func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			numbers(v.Elem(), name, visit)
		}
	case reflect.Struct:
		if _, ok := reflect.TypeAssert[*Distribution](v.Addr()); ok {
			return
		}
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				numbers(v.Field(i), strings.TrimPrefix(name+"."+field.Name, "."), visit)
			}
		}
	case reflect.Int, reflect.Int64, reflect.Float64:
		visit(name, v)
	}
}

// TestGapIsNeverNegative checks that the gap is unknown if the mean hold exceeds the time per acquisition. Long holds
// that began before the window can cause this.
func TestGapIsNeverNegative(t *testing.T) {
	t.Parallel()
	for held, want := range map[float64]*float64{0.6e6: new(0.4e6), 1e6: new(0.0), 1.5e6: nil} {
		r := Run{WindowNS: 5e9, Record: Record{Keys: 1, Contended: true}}
		r.Speed.Acquisitions, r.Speed.Hold = 5000, Distribution{Count: 5000, MeanNS: &held}
		if r.Compute(); !cmp.Equal(r.Speed.Gap, want) {
			t.Errorf("holds of %v in a window for 1 ms each: a gap of %v", held, *r.Speed.Gap)
		}
	}
}
