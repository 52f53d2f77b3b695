package link

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net"

	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// CreateRemote checks the remote, seals its password here and stores it through the leader. Problems: Denied (no admin, security off),
// Invalid, Precondition (a gate), Conflict (name taken, 64 remotes, a link of another remote with the same target),
// Unavailable.
func (s *Service) CreateRemote(ctx context.Context, c Caller, req wire.CreateRemote) (wire.Remote, error) {
	now := s.o.Now().UnixMilli()
	r := meta.Remote{
		Name: req.Name, ID: meta.NewID(), Username: req.Username, CAPEM: req.CAPEM,
		SetAtMS: now, SetBy: c.Name, CreatedAtMS: now, CreatedBy: c.Name,
	}
	err := firstError(
		s.posture,
		func() error { return admin(c) },
		func() error { return checkRemoteName(req.Name) },
		func() (err error) { r.URL, err = s.checkURL(req.URL); return err },
		func() error { return checkUsername(req.Username) },
		func() error { return checkPassword(req.Password) },
		func() error { return checkCA(req.CAPEM) },
		func() (err error) { r.Limits, err = createLimits(req.Limits); return err },
		s.passwordGates,
		s.o.Raft.ReleaseGate,
		func() error { return s.roomFor(r.Name) },
		func() error { return s.sameTargetAs(r.Name, r.URL) },
	)
	if err != nil {
		return wire.Remote{}, err
	}
	put, err := s.seal(r, req.Password, 0)
	if err != nil {
		return wire.Remote{}, err
	}
	if _, err := s.submit(ctx, c, write{Kind: kindPutRemote, Put: put}); err != nil {
		return wire.Remote{}, err
	}
	return s.stored(r.Name)
}

// PatchRemote changes the fields that are named. A new url, username or ca_pem needs the password, since the sealed one would not
// open beside it (CRD-04). Problems as CreateRemote, and NotFound.
func (s *Service) PatchRemote(ctx context.Context, c Caller, name string, req wire.PatchRemote) (wire.Remote, error) {
	if err := firstError(s.posture, func() error { return admin(c) }); err != nil {
		return wire.Remote{}, err
	}
	old, ok := s.o.State.Remote(name)
	if !ok {
		return wire.Remote{}, noRemote()
	}
	r, password, err := s.patched(old, req)
	if err != nil {
		return wire.Remote{}, err
	}
	if err = firstError(s.o.Raft.ReleaseGate, func() error { return s.sameTargetAs(r.Name, r.URL) }); err != nil {
		return wire.Remote{}, err
	}
	put := &meta.PutRemote{Remote: r, FromRevision: old.Revision}
	if password != "" {
		r.CredentialVersion, r.SetAtMS, r.SetBy = old.CredentialVersion+1, s.o.Now().UnixMilli(), c.Name
		if err = s.passwordGates(); err != nil {
			return wire.Remote{}, err
		}
		if put, err = s.seal(r, password, old.Revision); err != nil {
			return wire.Remote{}, err
		}
	}
	if _, err := s.submit(ctx, c, write{Kind: kindPutRemote, Put: put}); err != nil {
		return wire.Remote{}, err
	}
	return s.stored(name)
}

// patched applies a PATCH to the record and returns the new password, "" when there is none.
func (s *Service) patched(old meta.Remote, req wire.PatchRemote) (r meta.Remote, password string, err error) {
	r = old
	limits, named, err := patchLimits(old.Limits, req.Limits)
	if err != nil {
		return r, "", err
	}
	if !named && req.URL == nil && req.Username == nil && req.Password == nil && req.CAPEM == nil {
		return r, "", invalid("nothing to change")
	}
	r.Limits = limits
	err = firstError(
		func() (err error) {
			if req.URL != nil {
				r.URL, err = s.checkURL(*req.URL)
			}
			return err
		},
		func() error {
			if !take(&r.Username, req.Username) {
				return nil
			}
			return checkUsername(r.Username)
		},
		func() error {
			if !take(&r.CAPEM, req.CAPEM) {
				return nil
			}
			return checkCA(r.CAPEM)
		},
		func() error {
			if !take(&password, req.Password) {
				return nil
			}
			return checkPassword(password)
		},
	)
	if err != nil {
		return r, "", err
	}
	if password == "" && (r.URL != old.URL || r.Username != old.Username || r.CAPEM != old.CAPEM) {
		return r, "", invalid("a new url, username or ca_pem needs the password")
	}
	return r, password, nil
}

// DeleteRemote removes a remote; while links use it only with force, and they then wait in remote_missing (WRT-13). It runs the
// release gate alone, so that it works with a member down (WRT-04).
func (s *Service) DeleteRemote(ctx context.Context, c Caller, name string, force bool) error {
	if err := admin(c); err != nil {
		return err
	}
	old, ok := s.o.State.Remote(name)
	if !ok {
		return noRemote()
	}
	if err := s.o.Raft.ReleaseGate(); err != nil {
		return err
	}
	_, err := s.submit(ctx, c, write{Kind: kindDeleteRemote, Name: name, ID: old.ID, Force: force})
	return err
}

// passwordGates are the gates of a write that carries a password in its body (WRT-05, CRD-12).
func (s *site) passwordGates() error {
	if !s.o.Settings.APIHopEncrypted {
		return wire.Refuse(wire.Precondition,
			"this node takes no password of a remote: set remotes.api_hop_encrypted once the hop to it is encrypted")
	}
	return s.o.Keys.Usable()
}

// seal seals the password into the record. The cluster's first create brings the salt (DEC-30); every entry names the one it was
// sealed under.
func (s *Service) seal(r meta.Remote, password string, from uint64) (*meta.PutRemote, error) {
	salt := s.o.State.Salt()
	if len(salt) == 0 {
		salt = make([]byte, meta.SaltBytes)
		_, _ = rand.Read(salt) // crypto/rand never fails: it ends the process instead
	}
	plain := []byte(password)
	defer clear(plain)
	if err := s.o.Keys.Seal(salt, &r, plain); err != nil {
		return nil, err
	}
	return &meta.PutRemote{Remote: r, FromRevision: from, Salt: salt}, nil
}

func noRemote() error { return wire.Refuse(wire.NotFound, "no such remote") }

func (s *site) roomFor(name string) error {
	if _, taken := s.o.State.Remote(name); taken {
		return wire.Refuse(wire.Conflict, "remote already exists")
	}
	if len(s.o.State.Remotes()) >= meta.MaxRemotes {
		return wire.Refuse(wire.Conflict, "a cluster has at most %d remotes", meta.MaxRemotes)
	}
	return nil
}

// leadPut checks a remote again and proposes it.
func (s *seat) leadPut(ctx context.Context, w *write) (written, []slog.Attr, error) {
	e := *w.Put
	r := &e.Remote
	extra := []slog.Attr{slog.String("fingerprint", r.Fingerprint), slog.Uint64("credential_version", max(r.CredentialVersion, 1))}
	if host, _, err := net.SplitHostPort(outbound.HostPort(r.URL)); err == nil {
		extra = append(extra, slog.String("host", host))
	}
	if err := s.everyPosture(ctx); err != nil {
		return written{}, extra, err
	}
	release, err := s.takeTurn(ctx)
	if err != nil {
		return written{}, extra, err
	}
	defer release()
	err = firstError(
		s.posture,
		func() error { return admin(Caller{Admin: w.Admin}) },
		func() error { return checkRemoteName(r.Name) },
		func() error { return s.checkStored(r) },
		func() error { return checkLimits(r.Limits) },
		func() error { return s.sameTargetAs(r.Name, r.URL) },
	)
	if err != nil {
		return written{}, extra, err
	}
	e.Origin = s.origin(w)
	done, err := s.propose(ctx, e)
	return done, extra, err
}

// checkStored checks what only a sound ingress sends.
func (s *site) checkStored(r *meta.Remote) error {
	canonical, err := s.checkURL(r.URL)
	if err != nil {
		return err
	}
	if canonical != r.URL || len(r.Ciphertext) == 0 {
		return invalid("the remote does not come from a sound member")
	}
	return firstError(func() error { return checkUsername(r.Username) }, func() error { return checkCA(r.CAPEM) })
}

func (s *seat) leadDelete(ctx context.Context, w *write) (written, []slog.Attr, error) {
	if err := admin(Caller{Admin: w.Admin}); err != nil {
		return written{}, nil, err
	}
	release, err := s.takeTurn(ctx)
	if err != nil {
		return written{}, nil, err
	}
	defer release()
	done, err := s.propose(ctx, meta.DeleteRemote{Name: w.Name, ID: w.ID, Origin: s.origin(w)})
	return done, nil, err
}
