package link

import (
	"context"
	"errors"
	"log/slog"

	"narad.example/narad/meta"
	"narad.example/narad/remote/vault"
	"narad.example/narad/wire"
)

// Reencrypt seals every password that is under another key than the current one under that one, through the leader (CRD-11). Connections,
// gates and credential versions stay (DEC-32). A remote that does not open is named in the answer, which is no error. Problems: Denied,
// Precondition (a gate, no usable cluster secret), Throttled, Unavailable; after an unknown outcome another call finishes the work.
func (s *Service) Reencrypt(ctx context.Context, c Caller) (wire.Reencrypted, error) {
	err := firstError(s.posture, func() error { return admin(c) }, s.o.Keys.Usable, s.o.Raft.ReleaseGate)
	if err != nil {
		return wire.Reencrypted{}, err
	}
	done, err := s.submit(ctx, c, write{Kind: kindReencrypt})
	if err != nil {
		return wire.Reencrypted{}, err
	}
	if done.Reencrypted == nil {
		return wire.Reencrypted{}, unknownOutcome()
	}
	return *done.Reencrypted, nil
}

// leadReencrypt goes through the remotes in name order, one entry and one audit line each.
func (s *seat) leadReencrypt(ctx context.Context, w *write) (written, []slog.Attr, error) {
	err := firstError(
		s.posture, func() error { return admin(Caller{Admin: w.Admin}) }, s.o.Keys.Usable, func() error { return s.everyPosture(ctx) },
	)
	if err != nil {
		return written{}, nil, err
	}
	out := &wire.Reencrypted{
		KeyVersion: s.o.Keys.Version(s.o.State.Salt()), Reencrypted: []string{}, AlreadyCurrent: []string{}, Failed: []wire.ReencryptError{},
	}
	done := written{Reencrypted: out}
	for _, r := range s.o.State.Remotes() {
		one := *w
		one.Name = r.Name
		index, err := s.reseal(ctx, &one, out)
		if index != 0 {
			done.Index = index
		}
		if err != nil {
			w.lined = true // its own line says so
			return written{}, nil, err
		}
	}
	w.lined = true
	return done, nil, nil
}

// reseal moves one remote and notes where it belongs. What another write changed between the read and the entry is read again: its newer
// ciphertext stays unless it is under an old key too. The error ends the whole re-encrypt.
func (s *seat) reseal(ctx context.Context, w *write, out *wire.Reencrypted) (index uint64, err error) {
	for {
		r, ok := s.o.State.Remote(w.Name)
		if !ok {
			return 0, nil // deleted meanwhile
		}
		read := r.CredentialVersion
		changed, err := s.o.Keys.Reseal(s.o.State.Salt(), &r)
		switch {
		case errors.Is(err, vault.ErrKeyUnknown):
			s.auditLeader(ctx, w, 0, nil, err)
			out.Failed = append(out.Failed, wire.ReencryptError{Name: w.Name, Reason: wire.KeyUnknown})
			return 0, nil
		case errors.Is(err, vault.ErrOpen):
			s.auditLeader(ctx, w, 0, nil, err)
			out.Failed = append(out.Failed, wire.ReencryptError{Name: w.Name, Reason: wire.OpenFailed})
			return 0, nil
		case err != nil:
			s.auditLeader(ctx, w, 0, nil, err)
			return 0, err
		case !changed:
			out.AlreadyCurrent = append(out.AlreadyCurrent, w.Name)
			return 0, nil
		}
		done, err := s.propose(ctx, meta.Reseal{
			Name: r.Name, ID: r.ID, CredentialVersion: read, Ciphertext: r.Ciphertext, KeyVersion: r.KeyVersion, Fingerprint: r.Fingerprint,
			Origin: s.origin(w),
		})
		if kind := wire.KindOf(err); err != nil && (kind == wire.Conflict || kind == wire.NotFound) {
			continue
		}
		s.auditLeader(ctx, w, done.Index, []slog.Attr{
			slog.String("fingerprint", r.Fingerprint), slog.Uint64("credential_version", read),
		}, err)
		if err == nil {
			out.Reencrypted = append(out.Reencrypted, w.Name)
		}
		return done.Index, err
	}
}
