package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Headline is the answer in short.
type Headline struct {
	Name string `json:"name"` // that of the choice
	// Language and Packages are what to import: a mutex that belongs in front comes first.
	// There is none where no lock is to be taken.
	Language string   `json:"language,omitempty"`
	Packages []string `json:"packages,omitempty"`
	Call     string   `json:"call,omitempty"` // of somebody else's library
	RightIf  string   `json:"right_if"`
	// Alternative is the best of the locks measured that is somebody else's library.
	Alternative *Alternative `json:"alternative,omitempty"`
}

// Alternative is a lock that is somebody else's library.
type Alternative struct {
	Name string `json:"name"` // of the strategy that was measured, or stands for it
	strategies.Library
	Measured bool `json:"measured"`
	// Mutex says that it was measured behind a mutex for each process and key.
	Mutex bool `json:"mutex,omitempty"`
}

// gate is before the name of a lock that is behind a mutex of each process.
const (
	gate        = "gated:"
	gatePackage = "github.com/lockbench/lockbench/strategies/gated"
)

// headline is that of a lock.
func (q Question) headline(chosen contender, alternative *Alternative) *Headline {
	h := &Headline{Name: chosen.Name, Language: "Go", Packages: []string{chosen.info.Package}, RightIf: q.rightIf(chosen), Alternative: alternative}
	if libraries := chosen.info.Libraries; chosen.info.Library != "" && len(libraries) > 0 {
		h.Language, h.Packages, h.Call = libraries[0].Language, []string{libraries[0].Package}, libraries[0].Call
	}
	if strings.HasPrefix(chosen.Name, gate) {
		h.Packages = append([]string{gatePackage}, h.Packages...)
	}
	return h
}

// rightIf is the condition under which a lock is right.
func (q Question) rightIf(chosen contender) string {
	what := "two holders at once are only a nuisance, and the contention is like the one asked about"
	if q.For == Correctness {
		what = "what it protects checks the fencing token at every touch, reads too"
	}
	if chosen.info.MaxInstances == 1 {
		what += ", and there is one instance only"
	}
	return what
}

// without is the headline of what to take rather than a lock.
func (q Question) without(name string, alternative *Alternative) *Headline {
	switch {
	case name == ConsensusStore:
		h := &Headline{Name: name, RightIf: "two holders at once must not be, and what the lock protects does not check a fencing token at every touch"}
		for _, s := range strategies.All() {
			if s.Info.Store == "" || !s.Info.Claims.Fencing || len(s.Info.Libraries) == 0 {
				continue
			}
			library := s.Info.Libraries[0]
			if h.Packages == nil {
				h.Language, h.Packages, h.Call = library.Language, []string{library.Package}, library.Call
				continue
			}
			h.Alternative = &Alternative{Name: s.Info.Name, Library: library}
			break
		}
		return h
	case q.Workload.Work == workloads.WorkCounter:
		return &Headline{Name: name, RightIf: "all that a holder does fits into one command or Lua script", Alternative: alternative}
	}
	return &Headline{Name: name, RightIf: "there are as many arrivals as asked about", Alternative: alternative}
}

// somebodyElses is the best lock that is somebody else's library, beside the choice if that
// is one itself; nil if there is none.
func (q Question) somebodyElses(field []contender, chosen contender) *Alternative {
	theirs := slices.DeleteFunc(slices.Clone(field), func(c contender) bool {
		return len(c.info.Libraries) == 0 || c.Name == chosen.Name && c.info.Library != ""
	})
	if len(theirs) == 0 {
		return nil
	}
	best, _ := choose(q.criteria(), theirs)
	return &Alternative{Name: best.Name, Library: best.info.Libraries[0], Measured: true, Mutex: strings.HasPrefix(best.Name, gate)}
}

// lines are a headline's, each with a word before it.
func (h *Headline) lines() [][2]string {
	var all [][2]string
	if len(h.Packages) > 0 {
		what := strings.Join(h.Packages, " around ") + " (" + h.Language + ")"
		if h.Call != "" {
			what = strategies.Library{Language: h.Language, Package: h.Packages[len(h.Packages)-1], Call: h.Call}.String()
			if len(h.Packages) > 1 {
				what = h.Packages[0] + " around " + what
			}
		}
		all = append(all, [2]string{"take", what})
	}
	all = append(all, [2]string{"right if", h.RightIf})
	if a := h.Alternative; a != nil {
		text := a.Library.String()
		switch {
		case a.Name == h.Name:
			text += ", which is the same lock"
		case !a.Measured:
			text += ", not measured here: " + a.Name
		default:
			text += ", measured as " + a.Name
		}
		if a.Mutex {
			text += ", behind a mutex for each process and key"
		}
		all = append(all, [2]string{"somebody else's", text})
	}
	return all
}

// assumes is what a lock takes for granted where correctness is asked for.
func (q Question) assumes(chosen contender) []Sentence {
	if q.For != Correctness {
		return nil
	}
	violations, counted := chosen.figure("violations")
	claims := func(names ...string) []findings.Evidence {
		return []findings.Evidence{{Strategy: chosen.Name, Claims: names}}
	}
	return []Sentence{
		{
			Text:     "What it protects keeps the highest fencing token it has seen beside its data, and refuses every touch with a lower one, reads too. Checking writes alone loses updates: lockbench claims 30.",
			Evidence: claims("fencing"),
		},
		{
			Text: "Exclusion holds as long as Redis keeps what it has confirmed. A failover to a replica that lags, or a restart without the data, forgets the holder: then two hold it, and a token that is counted in Redis may go back. " +
				"What Redis loses then and a consensus store keeps, lockbench claims 32 tells. Here no server failed; violations: " + counted + ".",
			Evidence: []findings.Evidence{violations},
		},
	}
}

// tooShort says that windows are shorter than they should be, and how long they should be.
func (q Question) tooShort() []Sentence {
	if q.needed == 0 {
		return nil
	}
	text := fmt.Sprintf("The windows are %v, so that the answer comes within three minutes; %v would serve every client %s, and less hides who starves: --duration %v.",
		q.Workload.Duration, q.needed, words.Count(turns, "time"), q.needed)
	return []Sentence{{Text: text, Evidence: []findings.Evidence{{
		Metric: "window", Unit: results.Nanoseconds, Value: &results.Figure{Value: float64(q.Workload.Duration)},
	}}}}
}
