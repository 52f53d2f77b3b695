package link

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/remote/vault"
	"narad.example/narad/wire"
)

// covers: CRD-01, CRD-05, CRD-13, WRT-01, WRT-11
func TestCreateSealsHereAndStoresThere(t *testing.T) {
	r := newRig(t)
	got := r.remote("dr")
	require.Equal(t, "https://example.com:7942", got.URL)
	require.Regexp(t, "^[0-9a-f]{12}$", got.Password.Fingerprint)
	require.Equal(t, "admin", got.Password.SetBy)
	require.EqualValues(t, 1, got.Revision)
	require.EqualValues(t, 1, got.CredentialVersion)
	require.Equal(t, wire.DefaultLimits(), got.Limits)
	require.Len(t, got.CAPEMSHA512, 128)
	require.Nil(t, got.Links)
	require.Nil(t, got.Nodes)
	body, err := json.Marshal(got)
	require.NoError(t, err)
	r.noSecrets(string(body))

	short, whole := r.lines()
	require.Equal(t, []string{"remote.create dr committed"}, short)
	require.Equal(t, root.RequestID, whole[0]["request_id"])
	require.EqualValues(t, 1, whole[0]["index"])
	require.Equal(t, got.Password.Fingerprint, whole[0]["fingerprint"])
	require.NotContains(t, whole[0], "status")
	require.NotContains(t, r.logs.String(), "https://")
	require.NotContains(t, r.logs.String(), "copier")

	list, err := r.Remotes(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, "none", list.Allowlist)
	require.Equal(t, got.Password.KeyVersion, list.Key.KeyVersion)
	require.NotEmpty(t, list.Key.FirstSealedAt)
	require.Equal(t, []wire.RemoteNode{{Node: "n1", State: "ready", CredentialVersion: 1, KeyVersion: got.Password.KeyVersion, Fingerprint: got.Password.Fingerprint, LastError: "none"}}, list.Remotes[0].Nodes)
	one, err := r.Remote(t.Context(), "dr", false)
	require.NoError(t, err)
	require.Nil(t, one.Nodes)
	_, err = r.Remote(t.Context(), "none", false)
	r.refused(err, wire.NotFound)
}

// covers: NET-04
func TestCreateChecksEveryField(t *testing.T) {
	r := newRig(t)
	long := strings.Repeat("x", 73)
	for name, change := range map[string]func(*wire.CreateRemote){
		"no name": func(q *wire.CreateRemote) { q.Name = "" }, "capital": func(q *wire.CreateRemote) { q.Name = "Dr" }, "digit first": func(q *wire.CreateRemote) { q.Name = "1dr" },
		"long name": func(q *wire.CreateRemote) { q.Name = strings.Repeat("a", 64) }, "http": func(q *wire.CreateRemote) { q.URL = "http://example.com:7942" },
		"port": func(q *wire.CreateRemote) { q.URL = "https://example.com:7943" }, "loopback": func(q *wire.CreateRemote) { q.URL = "https://127.0.0.1" },
		"decimal address": func(q *wire.CreateRemote) { q.URL = "https://2130706433" }, "user in url": func(q *wire.CreateRemote) { q.URL = "https://copier:" + canary + "@example.com" },
		"no username": func(q *wire.CreateRemote) { q.Username = "" }, "bad username": func(q *wire.CreateRemote) { q.Username = "a b" }, "dots": func(q *wire.CreateRemote) { q.Username = ".." },
		"long username": func(q *wire.CreateRemote) { q.Username = strings.Repeat("a", 65) }, "short password": func(q *wire.CreateRemote) { q.Password = canary[:23] },
		"long password": func(q *wire.CreateRemote) { q.Password = long }, "ca": func(q *wire.CreateRemote) { q.CAPEM = canary }, "ca and more": func(q *wire.CreateRemote) { q.CAPEM += canary },
		"max_in_flight": func(q *wire.CreateRemote) { q.Limits = &wire.Limits{MaxInFlight: 257} }, "request_timeout": func(q *wire.CreateRemote) { q.Limits = &wire.Limits{RequestTimeoutMS: 4999} },
		"idle": func(q *wire.CreateRemote) { q.Limits = &wire.Limits{IdleConnTimeoutMS: 999} }, "age": func(q *wire.CreateRemote) { q.Limits = &wire.Limits{ConnMaxAgeMS: 3_600_001} },
		"interval": func(q *wire.CreateRemote) { q.Limits = &wire.Limits{CheckIntervalMS: -1} }, "compression": func(q *wire.CreateRemote) { q.Limits = &wire.Limits{Compression: "gzip"} },
	} {
		t.Run(name, func(t *testing.T) {
			req := r.create("dr")
			change(&req)
			_, err := r.CreateRemote(t.Context(), root, req)
			p := r.refusal(err, wire.Invalid)
			require.NotContains(t, p.Text, "7943")
			require.NotContains(t, p.Text, long)
		})
	}
	require.Empty(t, r.leader.bodies)
	req := r.create("ok")
	req.URL, req.Limits = "HTTPS://Example.COM.:443/", &wire.Limits{MaxInFlight: 3, Compression: "zstd"}
	got, err := r.CreateRemote(t.Context(), root, req)
	require.NoError(t, err)
	require.Equal(t, "https://example.com", got.URL)
	require.Equal(t, 3, got.Limits.MaxInFlight)
	require.EqualValues(t, 30_000, got.Limits.RequestTimeoutMS)
}

// covers: WRT-05, CRD-12, WRT-02
func TestGatesInFrontOfAPassword(t *testing.T) {
	weak, err := vault.NewKeys("too-weak", "")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		change func(*Options)
		kind   wire.Kind
	}{
		"hop":    {func(o *Options) { o.Settings.APIHopEncrypted = false }, wire.Precondition},
		"secret": {func(o *Options) { o.Keys = weak }, wire.Precondition},
		"legacy": {func(o *Options) { o.Settings.LegacyClusterAuth = true }, wire.Precondition},
		"open":   {func(o *Options) { o.Settings.Security = false }, wire.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.change)
			_, refusal := r.CreateRemote(t.Context(), root, r.create("dr"))
			p := r.refusal(refusal, tc.kind)
			if name == "open" {
				require.Equal(t, "remotes require security", p.Text)
			}
			require.Empty(t, r.leader.bodies)
		})
	}
	r := newRig(t)
	r.raft.gate = wire.Refuse(wire.Precondition, "member n2").With("class", "old_release")
	_, err = r.CreateRemote(t.Context(), root, r.create("dr"))
	r.refused(err, wire.Precondition)
	_, err = r.CreateRemote(t.Context(), Caller{Name: "u"}, r.create("dr"))
	r.refused(err, wire.Denied)
	require.Empty(t, r.leader.bodies)
}

// The stale change at the end is DEC-31's.
// covers: CRD-04
func TestPatch(t *testing.T) {
	r := newRig(t)
	first := r.remote("dr")
	patch := func(p wire.PatchRemote) (wire.Remote, error) { return r.PatchRemote(t.Context(), root, "dr", p) }
	for name, p := range map[string]wire.PatchRemote{
		"nothing": {}, "no limit": {Limits: &wire.PatchLimits{}}, "url": {URL: ptr("https://example.com")}, "username": {Username: ptr("other")}, "ca": {CAPEM: ptr("")},
		"zero": {Limits: &wire.PatchLimits{MaxInFlight: ptr(0)}}, "empty": {Limits: &wire.PatchLimits{Compression: ptr("")}}, "empty password": {Password: ptr("")},
		"no name": {Username: ptr(""), Password: ptr(canary)}, "bad ca": {CAPEM: ptr("x"), Password: ptr(canary)},
	} {
		_, err := patch(p)
		require.Equal(t, wire.Invalid, wire.KindOf(err), name)
	}
	same, err := patch(wire.PatchRemote{URL: ptr("https://EXAMPLE.com:7942/"), Limits: &wire.PatchLimits{MaxInFlight: ptr(7)}})
	require.NoError(t, err, "the same url is not a new one")
	require.Equal(t, 7, same.Limits.MaxInFlight)
	require.EqualValues(t, 2, same.Revision)
	require.EqualValues(t, 1, same.CredentialVersion)
	require.Equal(t, first.Password, same.Password)

	other, err := patch(wire.PatchRemote{Password: ptr(canary + "2"), CAPEM: ptr(""), Username: ptr("copier2")})
	require.NoError(t, err)
	require.EqualValues(t, 3, other.Revision)
	require.EqualValues(t, 2, other.CredentialVersion)
	require.Equal(t, 7, other.Limits.MaxInFlight)
	require.Empty(t, other.CAPEMSHA512)
	require.NotEqual(t, first.Password.Fingerprint, other.Password.Fingerprint)
	require.Equal(t, first.ID, other.ID)
	require.Empty(t, r.o.Vault.Entry("dr").State, "it opens under its new binding")

	stale, ok := r.raft.Remote("dr")
	require.True(t, ok)
	_, err = r.submit(t.Context(), root, write{Kind: kindPutRemote, Put: &meta.PutRemote{Remote: stale, FromRevision: 2}})
	r.refused(err, wire.Conflict)
	_, err = r.PatchRemote(t.Context(), root, "none", wire.PatchRemote{Password: ptr(canary)})
	r.refused(err, wire.NotFound)
	short, _ := r.lines()
	require.Equal(t, []string{"remote.create dr committed", "remote.update dr committed", "remote.update dr committed", "remote.update dr refused"}, short)
}

// DEC-30: the first salt that is applied stays.
// covers: CRD-02
func TestTwoFirstCreates(t *testing.T) {
	r := newRig(t)
	salted := func(name string) *meta.PutRemote {
		rec := meta.Remote{Name: name, ID: meta.NewID(), URL: "https://example.com", Username: "copier", Limits: wire.DefaultLimits()}
		put, err := r.seal(rec, canary, 0)
		require.NoError(t, err)
		return put
	}
	a, b := salted("a"), salted("b")
	require.NotEqual(t, a.Salt, b.Salt)
	_, err := r.submit(t.Context(), root, write{Kind: kindPutRemote, Put: a})
	require.NoError(t, err)
	_, err = r.submit(t.Context(), root, write{Kind: kindPutRemote, Put: b})
	r.refused(err, wire.Unavailable)
	_, ok := r.raft.Remote("b")
	require.False(t, ok)
	_, err = r.submit(t.Context(), root, write{Kind: kindPutRemote, Put: salted("b")})
	require.NoError(t, err, "the next try seals under the salt that stayed")
	short, _ := r.lines()
	require.Equal(t, []string{"remote.create a committed", "remote.create b refused", "remote.create b committed"}, short)
}

func TestSixtyFourRemotesAndOneName(t *testing.T) {
	r := newRig(t)
	for i := range meta.MaxRemotes {
		r.remote("r" + strconv.Itoa(i))
	}
	_, err := r.CreateRemote(t.Context(), root, r.create("r64"))
	r.refused(err, wire.Conflict)
	_, err = r.CreateRemote(t.Context(), root, r.create("r1"))
	r.refused(err, wire.Conflict)
}

// covers: WRT-01
func TestTheLeaderChecksAgain(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Admin = func(name string) bool { return name == "admin" } })
	r.remote("dr")
	rec, _ := r.raft.Remote("dr")
	for name, tc := range map[string]struct {
		change func(*write)
		kind   wire.Kind
	}{
		"no admin":    {func(w *write) { w.Actor = "mallory" }, wire.Denied},
		"url":         {func(w *write) { w.Put.Remote.URL = "https://169.254.169.254" }, wire.Invalid},
		"spelling":    {func(w *write) { w.Put.Remote.URL = "https://EXAMPLE.com" }, wire.Invalid},
		"no password": {func(w *write) { w.Put.Remote.Ciphertext = nil }, wire.Invalid},
		"limits":      {func(w *write) { w.Put.Remote.Limits.MaxInFlight = 0 }, wire.Invalid},
		"kind":        {func(w *write) { w.Kind = "other" }, wire.Precondition},
		"empty":       {func(w *write) { w.Put = nil }, wire.Precondition},
	} {
		w := write{Kind: kindPutRemote, Actor: "admin", Admin: true, RequestID: "x", Put: &meta.PutRemote{Remote: rec, FromRevision: 1}}
		tc.change(&w)
		body, err := json.Marshal(w)
		require.NoError(t, err)
		_, err = r.ServeRemoteWrite(t.Context(), body)
		require.Equal(t, tc.kind, wire.KindOf(err), name)
	}
	_, err := r.ServeRemoteWrite(t.Context(), []byte("{"))
	r.refused(err, wire.Precondition)
}

// covers: WRT-11
func TestOutcomesThatNobodyKnows(t *testing.T) {
	r := newRig(t)
	r.leader.err = errors.New("the connection broke")
	_, err := r.CreateRemote(t.Context(), root, r.create("dr"))
	p := r.refusal(err, wire.Unavailable)
	require.Contains(t, p.Text, "the change may still be applied")
	require.Len(t, r.leader.bodies, 1, "never sent twice (DEC-36)")

	r.leader.err = nil
	r.raft.propose = wire.Refuse(wire.Unavailable, "the outcome is unknown: the change may still be applied")
	_, err = r.CreateRemote(t.Context(), root, r.create("dr"))
	require.Contains(t, r.refusal(err, wire.Unavailable).Text, "the change may still be applied")
	r.raft.propose = meta.ErrNotLeader
	_, err = r.CreateRemote(t.Context(), root, r.create("dr"))
	require.NotContains(t, r.refusal(err, wire.Unavailable).Text, "may still be applied")

	r.raft.propose, r.raft.behind = nil, errors.New("slow")
	_, err = r.CreateRemote(t.Context(), root, r.create("dr"))
	p = r.refusal(err, wire.Unavailable)
	require.Equal(t, false, p.Fields["settled"])
	short, _ := r.lines()
	require.Equal(t, []string{"remote.create dr unknown", "remote.create dr refused", "remote.create dr committed"}, short)
}
