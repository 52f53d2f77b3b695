package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/partition"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

var (
	errOver    = errors.New("the move has ended")                  // flipped, aborted, or another one
	errLost    = errors.New("another attempt of the move began")   // begin again with a new claim
	errScratch = errors.New("the copy does not fit the source")    // begin again, with nothing
	errLonger  = errors.New("the source has more than was copied") // copy on
)

// incoming is the work of a target at one move, in one process.
type incoming struct {
	m    *Moves
	at   place
	id   string // of the move
	from string // the source

	attempt string
	clean   bool                 // what lies here was copied by this process, in this move
	part    *partition.Partition // nil until clean
	token   string               // of the freeze
	best    int64                // the highest offset that the copy has reached, also before it was begun anew
	stuck   time.Time            // since when it got no higher, without the leader being why; zero when that is not so
}

// receive works on a move until it is over or ctx ends.
func (m *Moves) receive(ctx context.Context, at place, id string) {
	log := m.o.Logger.With(slog.String("topic_id", at.topicID), slog.Int("partition", at.partition))
	defer m.release(at)
	in := &incoming{m: m, at: at, id: id}
	for failed, wait := false, retryAfter; ctx.Err() == nil; wait = min(2*wait, maxRetry) {
		err := m.hold(ctx, at)
		if err == nil {
			err = in.attemptOnce(ctx)
		}
		if err == nil || errors.Is(err, errOver) {
			if err == nil {
				log.Info("a partition has moved here", slog.String("from", in.from))
			}
			return
		}
		if !failed && ctx.Err() == nil {
			log.Warn("a move of a partition to this node begins again", slog.Any("error", err))
		}
		failed = true
		if in.hopeless() && in.propose(ctx, meta.EndMove{TopicID: at.topicID, Partition: at.partition, MoveID: id}) == nil {
			log.Error("a move of a partition to this node is given up: it made no progress", slog.String("from", in.from), slog.Any("error", err))
			return
		}
		pause(ctx, wait)
	}
}

// hopeless tells whether nothing came of the move for GiveUpAfter, though the leader was there each time.
func (in *incoming) hopeless() bool { return !in.stuck.IsZero() && time.Since(in.stuck) >= GiveUpAfter }

// attemptOnce claims the move and takes it to its end, nil when the partition is this node's.
func (in *incoming) attemptOnce(ctx context.Context) error {
	if err := in.claim(ctx); err != nil {
		in.stuck = time.Time{}
		return err
	}
	if in.stuck.IsZero() {
		in.stuck = time.Now()
	}
	in.m.o.At(ctx, Claimed)
	err := in.fill(ctx)
	if errors.Is(err, errScratch) {
		in.clean = false // deleted behind the next claim, which no flip of this attempt can pass
	}
	return err
}

// claim makes a fresh attempt the only one that may flip.
func (in *incoming) claim(ctx context.Context) error {
	mv, err := in.look(ctx)
	if err != nil {
		return err
	}
	fresh := meta.NewID()
	err = in.propose(ctx, meta.ClaimMove{TopicID: in.at.topicID, Partition: in.at.partition, MoveID: in.id, Was: mv.Attempt, Attempt: fresh})
	if err != nil {
		if mv, now := in.look(ctx); now != nil || mv.Attempt != fresh { // an unknown outcome counts when it is seen
			return errors.Join(now, err)
		}
	}
	in.attempt = fresh
	return nil
}

func (in *incoming) propose(ctx context.Context, e meta.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, proposeWait)
	defer cancel()
	_, err := in.m.o.Leader.Propose(ctx, e)
	return err
}

// look asks the leader, and returns the move. errOver says that there is none; nil as owner is told apart by mine.
func (in *incoming) look(ctx context.Context) (meta.Move, error) {
	if err := in.m.o.Leader.Current(ctx); err != nil {
		return meta.Move{}, err
	}
	t, ok := in.m.o.State.TopicByID(in.at.topicID)
	mv, moves := t.Move(in.at.partition)
	if !ok || !moves || mv.ID != in.id || mv.To != in.m.o.NodeID {
		return meta.Move{}, errOver
	}
	in.from = t.NodeOf(in.at.partition)
	return mv, nil
}

// fill does the steps from the copy to the flip.
func (in *incoming) fill(ctx context.Context) error {
	if !in.clean {
		if err := in.begin(ctx); err != nil {
			return err
		}
	}
	in.m.o.At(ctx, Cleaned)
	for {
		err := in.finish(ctx)
		void := problemClass(err) == classVoid
		if !void && !errors.Is(err, errLonger) {
			return err
		}
		in.token = ""
		if !pause(ctx, retryAfter) { // the source thawed and took records: the copy goes on
			return ctx.Err()
		}
	}
}

// begin deletes what lies here and opens an empty draft at the source's oldest offset.
func (in *incoming) begin(ctx context.Context) error {
	if err := in.m.o.Store.Remove(in.at.topicID, in.at.partition); err != nil {
		return err
	}
	b, _, err := in.read(ctx, -1, 0, nil)
	if err != nil {
		return err
	}
	in.part, err = in.m.o.Store.OpenDraft(in.at.topicID, in.at.partition, b.Oldest)
	in.clean = err == nil
	return err
}

// finish copies, settles the copy, freezes, drains twice, takes the files over, fences and flips. The bulk is settled before the freeze, so that
// the source waits for the sync of the rest alone.
func (in *incoming) finish(ctx context.Context) error {
	if _, err := in.copy(ctx); err != nil {
		return err
	}
	if err := in.part.Settle(ctx); err != nil {
		return in.spoilt(err)
	}
	in.m.o.At(ctx, Copied)
	in.token = meta.NewID()
	if err := in.call(ctx, OpFreeze, freezeWait, &bounds{}); err != nil {
		return err
	}
	in.m.o.At(ctx, Frozen)
	if _, err := in.copy(ctx); err != nil {
		return err
	}
	if n, err := in.copy(ctx); err != nil || n > 0 {
		return errors.Join(err, moreOf(n))
	}
	in.m.o.At(ctx, Drained)
	if err := in.files(ctx); err != nil {
		return err
	}
	in.m.o.At(ctx, Filed)
	var b bounds
	if err := in.call(ctx, OpFence, callWait, &b); err != nil {
		return err
	}
	if b.High != in.part.HighWatermark() {
		return errLonger
	}
	in.m.o.At(ctx, Fenced)
	return in.flip(ctx)
}

func moreOf(n int) error {
	if n > 0 {
		return errLonger
	}
	return nil
}

// spoilt marks the error of a copy that no later step can use.
func (in *incoming) spoilt(err error) error {
	if in.part.Failed() != nil || errors.Is(err, partition.ErrClosed) || errors.Is(err, partition.ErrGap) {
		return errors.Join(errScratch, err)
	}
	return err
}

// files puts the source's consumer state and cursor files beside the copy, and nothing else of their kind.
func (in *incoming) files(ctx context.Context) error {
	var a filesAnswer
	if err := in.call(ctx, OpFiles, callWait, &a); err != nil {
		return err
	}
	dir, disk := in.part.Dir(), in.m.o.FS
	old, err := disk.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list the copy: %w", err)
	}
	for _, e := range old {
		if !travels(e.Name()) {
			continue
		}
		if err = disk.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("take an old file away: %w", err)
		}
	}
	for _, f := range a.Files {
		if !travels(f.Name) {
			continue
		}
		if err = vfs.WriteFile(disk, filepath.Join(dir, f.Name), f.Data, 0o600); err != nil {
			return fmt.Errorf("install a file: %w", err)
		}
	}
	return disk.SyncDir(dir)
}

// flip makes this node the owner. An unknown outcome is resolved with the leader (DESIGN.md, Steps of the target).
func (in *incoming) flip(ctx context.Context) error {
	for ctx.Err() == nil {
		err := in.propose(ctx, meta.FlipMove{
			TopicID: in.at.topicID, Partition: in.at.partition, MoveID: in.id, Attempt: in.attempt, From: in.from,
		})
		in.m.o.At(ctx, Proposed)
		if err == nil {
			return nil
		}
		mv, now := in.look(ctx)
		switch {
		case errors.Is(now, errOver) && in.mine():
			return nil
		case errors.Is(now, errOver):
			return now
		case now == nil && mv.Attempt != in.attempt:
			return errLost
		}
		pause(ctx, retryAfter)
	}
	return ctx.Err()
}

// mine tells whether this node owns the partition by its replica.
func (in *incoming) mine() bool {
	t, ok := in.m.o.State.TopicByID(in.at.topicID)
	return ok && t.NodeOf(in.at.partition) == in.m.o.NodeID
}

// ask is a question to the source.
func (in *incoming) ask() ask {
	return ask{TopicID: in.at.topicID, Partition: in.at.partition, Attempt: in.attempt, Applied: in.m.o.State.Applied(), Token: in.token}
}

// read is one call of MoveRead. The records lie in room where that is large enough.
func (in *incoming) read(ctx context.Context, from int64, records int, room []byte) (bounds, partition.Stored, error) {
	q := in.ask()
	q.From, q.Records = from, records
	body, err := json.Marshal(q)
	if err != nil {
		return bounds{}, partition.Stored{}, err
	}
	raw, err := in.m.o.Caller.Call(ctx, in.from, OpRead, body, room, callWait)
	if err != nil {
		return bounds{}, partition.Stored{}, err
	}
	return decodeRead(raw, from)
}

func (in *incoming) call(ctx context.Context, op string, limit time.Duration, answer any) error {
	body, err := json.Marshal(in.ask())
	if err != nil {
		return err
	}
	raw, err := in.m.o.Caller.Call(ctx, in.from, op, body, nil, limit)
	if err != nil {
		return err
	}
	if err = json.Unmarshal(raw, answer); err != nil {
		return fmt.Errorf("the source's answer to %s does not decode: %w", op, err)
	}
	return nil
}

// problemClass is the class of a refusal, empty for none.
func problemClass(err error) string {
	var p *wire.Problem
	if !errors.As(err, &p) {
		return ""
	}
	class, _ := p.Fields["class"].(string)
	return class
}
