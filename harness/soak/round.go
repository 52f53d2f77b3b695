package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"narad.example/harness/explore"
	"narad.example/harness/ledger"
	"narad.example/reports"
	"narad.example/scenarios"
)

// fileName is a round's scenario file in its folder.
const fileName = "round.yaml"

// round plays one round, more than once when it proves nothing, and keeps or prunes its folders.
func (s *soak) round(ctx context.Context, number int) (ledger.SoakRound, error) {
	at := time.Since(s.began)
	var earlier []ledger.Try
	for try := 1; ; try++ {
		p, err := s.play(ctx, number, try)
		if err != nil {
			return ledger.SoakRound{}, err
		}
		row := rowOf(number, p.scenario, &p.result, filepath.Join(p.dir, p.result.Folder))
		row.Tries, row.AtMS, row.DurationMS, row.Earlier = try, at.Milliseconds(), (time.Since(s.began) - at).Milliseconds(), earlier
		row.Cut = row.Verdict != ledger.Fail && ended(ctx)
		if row.Verdict == ledger.Pass && !row.Cut {
			if err = os.RemoveAll(p.dir); err != nil {
				err = fmt.Errorf("soak: pruning round %d: %w", number, err)
			}
			return row, errors.Join(err, s.prune(&row))
		}
		if perr := reports.Write(p.dir); perr != nil {
			row.Says += "; it has no page: " + perr.Error() // its data is there
		}
		if row.Verdict != ledger.Inconclusive || row.Cut || try >= tries {
			s.keep(&row, p)
			return row, s.prune(&row)
		}
		one := ledger.TryOf(&p.result)
		one.Folder = s.folder(p)
		earlier = append(earlier, one)
		s.o.Say(fmt.Sprintf("round %d proved nothing and is played once more: %s (%s)", number, row.Says, p.dir))
	}
}

// played is one time that a round was played.
type played struct {
	scenario *scenarios.Scenario
	dir      string // a run folder
	result   ledger.ScenarioRun
}

// play plays a round into a run folder of its own. The scenario file is there before the round begins.
func (s *soak) play(ctx context.Context, number, try int) (*played, error) {
	name := fmt.Sprintf("%04d", number)
	if try > 1 {
		name += fmt.Sprintf(".try-%d", try)
	}
	p := &played{scenario: explore.Round(s.o.Seed, number, s.o.Ground), dir: filepath.Join(s.o.Dir, ledger.RoundsName, name)}
	p.scenario.File = filepath.Join(p.dir, fileName)
	text, err := scenarios.Marshal(p.scenario)
	if err != nil {
		return p, err
	}
	if err = os.MkdirAll(p.dir, 0o755); err != nil {
		return p, fmt.Errorf("soak: %w", err)
	}
	if err = os.WriteFile(p.scenario.File, append([]byte(s.header(number, p.scenario.File)), text...), 0o644); err != nil {
		return p, fmt.Errorf("soak: %w", err)
	}
	began := time.Now()
	p.result = s.o.Play(ctx, p.scenario, filepath.Join(p.dir, ledger.Slug(p.scenario.Name)))
	if p.result.Verdict == ledger.NotRun {
		p.result.Verdict = ledger.Inconclusive // a soak has no backend to be spared by
	}
	p.result.Tries = try
	head := ledger.Run{
		Seed: s.o.Seed, Commit: s.book.Commit, Backend: s.book.Backend, Versions: s.book.Versions, Started: stamp(began), Ended: stamp(time.Now()),
		Verdict: p.result.Verdict, Scenarios: []ledger.ScenarioRun{p.result},
	}
	return p, ledger.WriteJSON(filepath.Join(p.dir, ledger.RunName), head)
}

// header says in the scenario file where it comes from.
func (s *soak) header(number int, file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by chaos soak: seed %d, round %d, commit %s.\n", s.o.Seed, number, s.book.Commit)
	fmt.Fprintf(&b, "# Play it again: %s\n", s.replay(file))
	fmt.Fprintf(&b, "# Make it anew from the seed: %s\n", s.remake(number))
	return b.String()
}

func (s *soak) replay(file string) string {
	return fmt.Sprintf("bin/chaos run --backend %s --seed %d %s", s.book.Backend, s.o.Seed, file)
}

func (s *soak) remake(number int) string {
	return fmt.Sprintf("bin/chaos soak --backend %s --seed %d --round %s --first %d --count 1", s.book.Backend, s.o.Seed, s.o.Ground.Length, number)
}

// folder is a played round's below the soak's.
func (*soak) folder(p *played) string {
	return filepath.Join(ledger.RoundsName, filepath.Base(p.dir))
}

// keep notes where a round lies that did not pass.
func (s *soak) keep(row *ledger.SoakRound, p *played) {
	row.Folder = s.folder(p)
	row.Replay = s.replay(p.scenario.File)
	if row.Verdict == ledger.Fail {
		judge, says := judgeOf(&p.result)
		s.book.Violation = &ledger.SoakViolation{
			Round: row.Number, Judge: judge, Says: says, Folder: row.Folder, File: filepath.Join(row.Folder, fileName),
			Replay: []string{row.Replay, s.remake(row.Number)},
		}
	}
}

// prune leaves the last few folders of those that proved nothing, this round's among them. That of a violation is no such folder.
func (s *soak) prune(row *ledger.SoakRound) error {
	kept := 0
	leave := func(folder *string) (gone bool, err error) {
		if *folder == "" {
			return false, nil
		}
		if kept++; kept <= keptDoubts {
			return false, nil
		}
		if err = os.RemoveAll(filepath.Join(s.o.Dir, *folder)); err != nil {
			return false, fmt.Errorf("soak: pruning %s: %w", *folder, err)
		}
		*folder = ""
		return true, nil
	}
	rows := []*ledger.SoakRound{row}
	for i := range slices.Backward(s.book.Rounds) {
		rows = append(rows, &s.book.Rounds[i])
	}
	for _, r := range rows {
		if r.Verdict != ledger.Fail {
			gone, err := leave(&r.Folder)
			if err != nil {
				return err
			}
			if gone {
				r.Replay = ""
			}
		}
		for i := range slices.Backward(r.Earlier) {
			if _, err := leave(&r.Earlier[i].Folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeOf is the first judge that failed.
func judgeOf(r *ledger.ScenarioRun) (name, says string) {
	for _, v := range r.Invariants {
		if v.Verdict == ledger.Fail {
			return v.Name, v.Says
		}
	}
	return "the run", r.Says
}
