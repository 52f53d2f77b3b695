package cluster

import (
	"context"
	"log/slog"
	"time"

	"narad.example/narad/meta"
)

// MemberStore is what the registration needs of the metadata; *meta.Store is one.
type MemberStore interface {
	Member(id string) (meta.Member, bool)
	Changed() <-chan struct{}
	Propose(ctx context.Context, e meta.Entry) (uint64, error)
}

// Registrar keeps this node's member record as it should be: addresses and the newest entry type this release applies (WRT-02).
// It proposes only when the record differs, so a quiet cluster writes no entry.
type Registrar struct {
	Meta   MemberStore
	Member meta.Member // Applies 0 is meta.NewestType
	Logger *slog.Logger
}

const registerAgain = time.Second

// Run registers and watches until ctx ends.
func (r *Registrar) Run(ctx context.Context) error {
	want := r.Member
	if want.Applies == 0 {
		want.Applies = meta.NewestType
	}
	for ctx.Err() == nil {
		changed := r.Meta.Changed()
		have, ok := r.Meta.Member(want.ID)
		have.HeartbeatMS, have.Drain, have.Leaving = want.HeartbeatMS, want.Drain, want.Leaving // not this node's to say
		if ok && have == want {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		if _, err := r.Meta.Propose(ctx, meta.PutMember{Member: want}); err != nil && ctx.Err() == nil {
			r.Logger.Debug("this node is not registered as a member yet", "cause", err)
			pause(ctx, registerAgain)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
