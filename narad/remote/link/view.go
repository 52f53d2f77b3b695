package link

import (
	"context"
	"crypto/sha512"
	"encoding/hex"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// Remotes lists all remotes in name order with their links and, with nodes, how every member holds them. Routes are the admin's (api.md).
func (s *Service) Remotes(ctx context.Context, nodes bool) (wire.Remotes, error) {
	out := wire.Remotes{Allowlist: "none", Key: s.key(), Remotes: []wire.Remote{}}
	if s.o.Guard.HasAllowlist() {
		out.Allowlist = "set"
	}
	known := s.o.State.Remotes()
	for _, r := range known {
		out.Remotes = append(out.Remotes, s.shown(r))
	}
	if nodes {
		c := s.askMembers(ctx)
		for i, r := range known {
			out.Remotes[i].Nodes = c.nodes(r)
		}
		out.Lingering, out.NotAnswering = c.lingering(s.o.State.Remotes()), c.silent
	}
	return out, nil
}

// Remote shows one remote as Remotes does. Problem: NotFound.
func (s *Service) Remote(ctx context.Context, name string, nodes bool) (wire.Remote, error) {
	r, ok := s.o.State.Remote(name)
	if !ok {
		return wire.Remote{}, noRemote()
	}
	v := s.shown(r)
	if nodes {
		v.Nodes = s.askMembers(ctx).nodes(r)
	}
	return v, nil
}

// stored is a write's answer: neither links nor nodes.
func (s *Service) stored(name string) (wire.Remote, error) {
	r, ok := s.o.State.Remote(name)
	if !ok {
		return wire.Remote{}, noRemote() // deleted by somebody else since
	}
	return remoteView(r), nil
}

func (s *Service) shown(r meta.Remote) wire.Remote {
	v := remoteView(r)
	v.Links = linkNames(s.o.State.Links(r.Name))
	return v
}

func remoteView(r meta.Remote) wire.Remote {
	v := wire.Remote{
		Name: r.Name, ID: r.ID, URL: r.URL, Username: r.Username,
		Password:          wire.Password{Fingerprint: r.Fingerprint, SetAt: instant(r.SetAtMS), SetBy: r.SetBy, KeyVersion: r.KeyVersion},
		CredentialVersion: r.CredentialVersion, Limits: r.Limits, Revision: r.Revision, CreatedAt: instant(r.CreatedAtMS), CreatedBy: r.CreatedBy,
	}
	if r.CAPEM != "" {
		sum := sha512.Sum512([]byte(r.CAPEM))
		v.CAPEMSHA512 = hex.EncodeToString(sum[:])
	}
	return v
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// node is this node's view. Key version and fingerprint are the record's (DEC-32).
func (s *Service) node(r meta.Remote) wire.RemoteNode {
	e := s.o.Vault.Entry(r.Name)
	n := wire.RemoteNode{Node: s.o.NodeID, State: wire.CredentialReady, CredentialVersion: e.CredentialVersion, LastError: "none"}
	switch {
	case e.State == wire.RemoteMissing:
		n.State = wire.CredentialMissing
	case e.State != "":
		n.State = string(e.State)
	case e.ID != r.ID || e.CredentialVersion != r.CredentialVersion:
		n.State = wire.CredentialStale
	}
	if e.State != wire.RemoteMissing {
		n.KeyVersion, n.Fingerprint = r.KeyVersion, r.Fingerprint
	}
	if e.Client != nil {
		if peer := e.Client.Peer(); !peer.CertNotAfter.IsZero() {
			at, rtt := peer.CertNotAfter.UTC().Format(time.RFC3339), milliseconds(peer.Connect)
			n.ServerCertNotAfter, n.RTTMS = &at, &rtt
		}
	}
	if s.o.Health == nil {
		return n
	}
	lastOK, lastError := s.o.Health.Remote(r.Name)
	if !lastOK.IsZero() {
		at := lastOK.UTC().Format(time.RFC3339)
		n.LastOKAt = &at
	}
	set(&n.LastError, lastError)
	return n
}

// key describes the key that new passwords are sealed under: since when, by the oldest password that it holds.
func (s *Service) key() wire.RemoteKey {
	k := wire.RemoteKey{KeyVersion: s.o.Keys.Version(s.o.State.Salt())}
	first := int64(0)
	for _, r := range s.o.State.Remotes() {
		if r.KeyVersion == k.KeyVersion && (first == 0 || r.SetAtMS < first) {
			first = r.SetAtMS
		}
	}
	if first != 0 {
		k.FirstSealedAt = instant(first)
		k.AgeSeconds = max(0, s.o.Now().Sub(time.UnixMilli(first)).Seconds())
	}
	return k
}
