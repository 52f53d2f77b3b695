package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"narad.example/harness/ledger"
	"narad.example/harness/run"
)

// screen shows a run while it goes: on a terminal one line that changes, in a log a plain line for each phase and every ten seconds.
type screen struct {
	out  io.Writer
	live bool

	mu    sync.Mutex // guards last and the order of lines; held for a write to the screen only
	last  time.Time
	width int
}

const plainEvery = 10 * time.Second

func newScreen(out io.Writer) *screen {
	s := &screen{out: out, width: 120}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.live = true
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			s.width = w
		}
	}
	return s
}

func (s *screen) line(text string) {
	if s.live {
		text = "\r\033[K" + text
	}
	_, _ = fmt.Fprintln(s.out, text)
}

// say writes a line of its own.
func (s *screen) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(text)
}

// Started names the scenario.
func (s *screen) Started(scenario, file, backend string, seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(fmt.Sprintf("== %s (%s) on %s, seed %d", scenario, file, backend, seed))
}

// Phase names the phase.
func (s *screen) Phase(scenario, phase string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live {
		s.line("   " + scenario + ": " + phase)
	}
}

// Progress shows counts, link states and the faults in force.
func (s *screen) Progress(p run.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live && time.Since(s.last) < plainEvery {
		return
	}
	s.last = time.Now()
	text := fmt.Sprintf("   %s: %s %4ds produced %d, on the wire %d, on the target %d", p.Scenario, p.Phase, int(p.At.Seconds()), p.Produced, p.OnWire, p.OnTarget)
	for _, l := range p.Links {
		text += fmt.Sprintf("; %s %s lag %d", l.Child, l.State, l.Lag)
	}
	if len(p.Faults) > 0 {
		text += "; now: " + strings.Join(p.Faults, ", ")
	}
	if s.live {
		runes := []rune(text)
		_, _ = fmt.Fprint(s.out, "\r\033[K"+string(runes[:min(len(runes), s.width-1)]))
		return
	}
	s.line(text)
}

// Ended says the verdict, and what broke.
func (s *screen) Ended(r ledger.ScenarioRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.line(fmt.Sprintf("   %s: %s after %.1f s, %d records, %d on the target", r.Name, strings.ToUpper(strings.ReplaceAll(r.Verdict, "_", " ")),
		float64(r.DurationMS)/1000, r.Counts.Acknowledged, r.Counts.OnTarget))
	if r.Says != "" {
		s.line("     " + r.Says)
	}
	for _, v := range r.Invariants {
		if v.Verdict == ledger.Fail || v.Verdict == ledger.Inconclusive {
			s.line(fmt.Sprintf("     %s: %s: %s", v.Name, v.Verdict, v.Says))
		}
	}
}
