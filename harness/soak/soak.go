package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"narad.example/harness/explore"
	"narad.example/harness/ledger"
	"narad.example/harness/run"
	"narad.example/reports"
)

// Options of Run.
type Options struct {
	Seed   uint64
	For    time.Duration // no round begins after it; 0 is no limit
	Count  int           // rounds at most; 0 is no limit
	First  int           // the number of the first round
	Ground explore.Ground
	Dir    string      // the soak's own folder, made anew; past soaks lie beside it
	Head   ledger.Soak // brings backend, commit, versions and command
	Play   run.One
	Room   Room
	Say    func(line string) // progress, a line a round
}

// Bounds of a soak.
const (
	tries       = 2  // how often a round that proves nothing is played
	doubtsInRow = 5  // rounds one after the other that proved nothing: something is wrong with the machine
	doubtsInTen = 1  // at the end, as in explore
	keptDoubts  = 10 // folders of rounds that proved nothing
	slowestKept = 20
)

// soak is one soak at work.
type soak struct {
	o     *Options
	began time.Time
	book  ledger.Soak
	row   int // rounds in a row that proved nothing
}

// Run plays rounds until its time is over, its count is reached, a promise is broken, rounds prove nothing, there is no room, or ctx ends. The soak that
// it returns is what soak.json holds; its verdict is pass only for rounds that lasted the whole time. The error is trouble of the harness.
func Run(ctx context.Context, o Options) (ledger.Soak, error) {
	if o.For <= 0 && o.Count <= 0 {
		return ledger.Soak{}, errors.New("soak: it wants a time or a count to end at")
	}
	s := &soak{o: &o, began: time.Now(), book: o.Head}
	if err := s.open(); err != nil {
		return s.book, err
	}
	says, err := s.rounds(ctx)
	if err != nil {
		says = "harness trouble: " + err.Error()
	}
	return s.book, errors.Join(err, s.close(says))
}

func (s *soak) open() error {
	if _, err := os.Stat(filepath.Join(s.o.Dir, ledger.SoakName)); err == nil {
		return fmt.Errorf("soak: %s holds a soak already; name another folder", s.o.Dir)
	}
	if err := os.MkdirAll(filepath.Join(s.o.Dir, ledger.RoundsName), 0o755); err != nil {
		return fmt.Errorf("soak: %w", err)
	}
	b := &s.book
	b.Seed, b.First, b.ForMS, b.RoundMS = s.o.Seed, s.o.First, s.o.For.Milliseconds(), s.o.Ground.Length.Milliseconds()
	b.Started, b.Rounds = stamp(s.began), []ledger.SoakRound{}
	if err := s.write(); err != nil {
		return err
	}
	return run.PointLatest(s.o.Dir)
}

// rounds plays one round after the other and says why it stopped; "" is that its time was over.
func (s *soak) rounds(ctx context.Context) (says string, err error) {
	for n := s.o.First; s.o.Count == 0 || n < s.o.First+s.o.Count; n++ {
		switch {
		case ended(ctx):
			return endedEarly, nil
		case s.o.For > 0 && time.Since(s.began) >= s.o.For:
			return "", nil
		}
		if says, err = s.o.Room.lacks(); says != "" || err != nil {
			return says, err
		}
		s.book.Playing = n
		if err = s.write(); err != nil {
			return "", err
		}
		row, err := s.round(ctx, n)
		if err != nil {
			return "", err
		}
		s.note(row)
		if err = s.write(); err != nil {
			return "", err
		}
		s.say(&row)
		switch {
		case s.book.Violation != nil:
			return fmt.Sprintf("round %d broke a promise", n), nil
		case row.Cut:
			return endedEarly, nil
		case s.row >= doubtsInRow:
			return fmt.Sprintf("%d rounds in a row proved nothing, the last one because %s", s.row, row.Says), nil
		}
	}
	return "", nil
}

const endedEarly = "it was ended early"

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// note adds a round to the book.
func (s *soak) note(row ledger.SoakRound) {
	b := &s.book
	b.Playing = 0
	b.Rounds = append(b.Rounds, row)
	if row.Verdict == ledger.Inconclusive && !row.Cut {
		s.row++
	} else {
		s.row = 0
	}
	b.Totals, b.Hours, b.Slowest = totals(b.Rounds), hours(b.Rounds), slowest(b.Rounds)
}

// close writes the verdict.
func (s *soak) close(says string) error {
	b := &s.book
	b.Playing, b.Ended, b.Says = 0, stamp(time.Now()), says
	t := &b.Totals
	switch {
	case b.Violation != nil:
		b.Verdict = ledger.Fail
	case says != "":
		b.Verdict = ledger.Inconclusive
	case t.Inconclusive*10 > t.Rounds*doubtsInTen:
		b.Verdict, b.Says = ledger.Inconclusive, fmt.Sprintf("%d of %d rounds proved nothing, which is more than one in ten", t.Inconclusive, t.Rounds)
	case t.Passed == 0:
		b.Verdict, b.Says = ledger.Inconclusive, "no round was played"
	default:
		b.Verdict, b.Says = ledger.Pass, "it went on for the whole time, and no promise was broken"
	}
	return s.write()
}

// write replaces the report.
func (s *soak) write() error {
	b := &s.book
	b.Updated = stamp(time.Now())
	if b.Ended == "" {
		b.Verdict, b.Says = ledger.Inconclusive, "it has not ended: it runs, or it was killed"
	}
	if err := ledger.WriteJSON(filepath.Join(s.o.Dir, ledger.SoakName), b); err != nil {
		return err
	}
	return reports.WriteSoak(s.o.Dir)
}

// say tells of a round that ended.
func (s *soak) say(row *ledger.SoakRound) {
	t := &s.book.Totals
	faults := 0
	for _, n := range t.Faults {
		faults += n
	}
	line := fmt.Sprintf("round %d: %s after %s; in all %s", row.Number, row.Verdict, time.Duration(row.DurationMS*int64(time.Millisecond)).Round(time.Second),
		time.Since(s.began).Round(time.Second))
	if s.o.For > 0 {
		line += " of " + s.o.For.String()
	}
	s.o.Say(fmt.Sprintf("%s, %d rounds, %d records, %d faults, %d inconclusive", line, t.Rounds, t.Acknowledged, faults, t.Inconclusive))
	if row.Says != "" {
		s.o.Say(fmt.Sprintf("  %s (%s)", row.Says, filepath.Join(s.o.Dir, row.Folder)))
	}
	if row.Replay != "" {
		s.o.Say("  again: " + row.Replay)
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
