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

// Headline is the short answer.
type Headline struct {
	Name string `json:"name"` // of the choice
	// Language and Packages say what to import; a mutex in front comes first. They are empty if no
	// lock is recommended.
	Language string   `json:"language,omitempty"`
	Packages []string `json:"packages,omitempty"`
	Call     string   `json:"call,omitempty"` // of another project's library
	RightIf  string   `json:"right_if"`
	// Alternative is the best measured lock that is another project's library.
	Alternative *Alternative `json:"alternative,omitempty"`
}

// Alternative is a lock that is another project's library.
type Alternative struct {
	Name string `json:"name"` // of the strategy that was measured, or that represents it
	strategies.Library
	Measured bool `json:"measured"`
	// Mutex says that it was measured behind a mutex for each process and key.
	Mutex bool `json:"mutex,omitempty"`
}

// gate is the prefix of a lock behind a mutex in each process.
const (
	gate        = "gated:"
	gatePackage = "github.com/lockbench/lockbench/strategies/gated"
)

// headline returns the headline of a lock.
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

// rightIf returns the condition under which a lock is right.
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

// without returns the headline of what to use rather than a lock.
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

// somebodyElses returns the best lock that is another project's library, other than the choice if that is
// one too; nil if there is none.
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

// lines returns a headline's lines, each with a label.
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

// assumes returns what must hold for a lock if correctness is required.
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

// tooShort says that windows are too short, and how long they should be.
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
