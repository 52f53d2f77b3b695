package link

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/remote/vault"
	"narad.example/narad/wire"
)

// between lets a test change a remote between a re-encrypt's read of it and its entry.
type between struct {
	*raft
	entry func(meta.Entry)
}

func (b *between) ProposeLocal(ctx context.Context, data []byte) (uint64, error) {
	if e, err := meta.Decode(data); err == nil && b.entry != nil {
		b.entry(e)
	}
	return b.raft.ProposeLocal(ctx, data)
}

// rotated is a node under a new cluster secret that knows the one before it, with the remotes a, b and c sealed under the old one.
func rotated(t *testing.T, change ...func(*Options)) (r *rig, old, now *vault.Keys) {
	t.Helper()
	first, second := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	old, err := vault.NewKeys(first, "")
	require.NoError(t, err)
	now, err = vault.NewKeys(second, first)
	require.NoError(t, err)
	r = newRig(t, change...)
	for _, name := range []string{"a", "b", "c"} {
		req := r.create(name)
		req.URL = "https://" + name + ".example.com:7942"
		_, err = r.CreateRemote(t.Context(), root, req)
		require.NoError(t, err)
	}
	r.o.Keys = now // the services read it at each use
	return r, old, now
}

// changed gives the remote a new password under its newest key, as a change by an admin does.
func (r *rig) changed(name string, keys *vault.Keys) meta.Remote {
	r.t.Helper()
	m, _ := r.raft.Remote(name)
	from := m.Revision
	m.CredentialVersion++
	require.NoError(r.t, keys.Seal(r.raft.Salt(), &m, []byte(canary+"-2")))
	r.apply(meta.PutRemote{Remote: m, FromRevision: from})
	m, _ = r.raft.Remote(name)
	return m
}

// A re-encrypt moves each password to the current key and changes nothing else of a remote; each has an audit line. A second one has nothing
// to do.
//
// covers: CRD-11, WRT-03, WRT-11
func TestAReencryptMovesEveryPassword(t *testing.T) {
	r, old, now := rotated(t)
	before := map[string]meta.Remote{}
	for _, m := range r.raft.Remotes() {
		before[m.Name] = m
	}
	got, err := r.Reencrypt(t.Context(), root)
	require.NoError(t, err)
	version := now.Version(r.raft.Salt())
	require.Equal(t, wire.Reencrypted{
		KeyVersion: version, Reencrypted: []string{"a", "b", "c"}, AlreadyCurrent: []string{}, Failed: []wire.ReencryptError{},
	}, got)
	for _, m := range r.raft.Remotes() {
		was := before[m.Name]
		require.Equal(t, version, m.KeyVersion)
		require.NotEqual(t, was.Fingerprint, m.Fingerprint)
		_, err = old.Open(r.raft.Salt(), &m)
		require.ErrorIs(t, err, vault.ErrKeyUnknown)
		password, openErr := now.Open(r.raft.Salt(), &m)
		require.NoError(t, openErr)
		require.Equal(t, canary, string(password))
		m.Ciphertext, m.KeyVersion, m.Fingerprint = was.Ciphertext, was.KeyVersion, was.Fingerprint
		require.Equal(t, was, m)
	}
	require.EqualValues(t, 3, now.Reopened())
	short, whole := r.lines()
	require.Equal(t, []string{"remote.reencrypt a committed", "remote.reencrypt b committed", "remote.reencrypt c committed"}, short[3:])
	require.Equal(t, root.RequestID, whole[3]["request_id"])
	require.NotEmpty(t, whole[3]["index"])

	entries := len(r.raft.entries)
	got, err = r.Reencrypt(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, got.AlreadyCurrent)
	require.Empty(t, got.Reencrypted)
	require.Len(t, r.raft.entries, entries)
	require.EqualValues(t, 3, now.Reopened())
	_, err = r.Reencrypt(t.Context(), Caller{Name: "u"})
	r.refused(err, wire.Denied)
	r.o.Members = crew{silent: []string{"n2"}}
	_, err = r.Reencrypt(t.Context(), root)
	require.Equal(t, "unreachable", r.refusal(err, wire.Precondition).Fields["class"])
}

// A remote that is changed between the read and the entry keeps its newer password, whichever key that is under; one that is deleted
// stays away.
//
// covers: CRD-11
func TestAReencryptLosesToAChange(t *testing.T) {
	b := &between{}
	r, old, now := rotated(t, func(o *Options) { b.raft = o.Raft.(*raft); o.Raft = b })
	times := map[string]int{}
	var want meta.Remote
	b.entry = func(e meta.Entry) {
		s, ok := e.(meta.Reseal)
		if !ok {
			return
		}
		times[s.Name]++
		switch {
		case s.Name == "a" && times["a"] == 1:
			want = r.changed("a", now)
		case s.Name == "b" && times["b"] == 1:
			r.changed("b", old) // from a node that has not been restarted
		case s.Name == "c":
			m, _ := r.raft.Remote("c")
			r.apply(meta.DeleteRemote{Name: "c", ID: m.ID})
		}
	}
	got, err := r.Reencrypt(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, got.AlreadyCurrent)
	require.Equal(t, []string{"b"}, got.Reencrypted)
	require.Empty(t, got.Failed)
	a, _ := r.raft.Remote("a")
	require.Equal(t, want, a)
	m, _ := r.raft.Remote("b")
	password, err := now.Open(r.raft.Salt(), &m)
	require.NoError(t, err)
	require.Equal(t, canary+"-2", string(password))
	_, ok := r.raft.Remote("c")
	require.False(t, ok)
}

// A password that does not open is named with its reason and left as it is, and the others are moved.
//
// covers: CRD-11, CRD-10
func TestAReencryptNamesWhatItCannotOpen(t *testing.T) {
	r, _, now := rotated(t)
	stranger, err := vault.NewKeys(strings.Repeat("c3", 32), "")
	require.NoError(t, err)
	lost := r.changed("a", stranger)
	broken, _ := r.raft.Remote("b")
	broken.Ciphertext = append([]byte{}, broken.Ciphertext...)
	broken.Ciphertext[len(broken.Ciphertext)-1] ^= 1
	r.apply(meta.Reseal{Name: "b", ID: broken.ID, CredentialVersion: 1, Ciphertext: broken.Ciphertext, KeyVersion: broken.KeyVersion})
	got, err := r.Reencrypt(t.Context(), root)
	require.NoError(t, err)
	require.Equal(t, []wire.ReencryptError{{Name: "a", Reason: "key_unknown"}, {Name: "b", Reason: "open_failed"}}, got.Failed)
	require.Equal(t, []string{"c"}, got.Reencrypted)
	require.EqualValues(t, 1, now.Reopened())
	a, _ := r.raft.Remote("a")
	require.Equal(t, lost.Ciphertext, a.Ciphertext)
	short, _ := r.lines()
	require.Equal(t, []string{"remote.reencrypt a refused", "remote.reencrypt b refused", "remote.reencrypt c committed"}, short[3:])
}
