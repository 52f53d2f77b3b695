package vault

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// state is the metadata of a test.
type state struct {
	mu      sync.Mutex // guards all below
	remotes []meta.Remote
	version uint64
	changed chan struct{}
}

func (s *state) Remotes() []meta.Remote {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.remotes)
}

func (s *state) RemotesVersion() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

func (*state) Salt() []byte { return salt }

func (s *state) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *state) set(version uint64, remotes ...meta.Remote) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.remotes = version, remotes
	close(s.changed)
	s.changed = make(chan struct{})
}

type counts struct {
	mu        sync.Mutex // guards all below
	decrypts  int
	states    map[string]string
	forgotten []string
}

func (c *counts) Decrypted(string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decrypts++
}

func (c *counts) Credential(remote, state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.states[remote] = state
}

func (*counts) Dialed(string, time.Duration, string) {}

func (c *counts) Forgotten(remote string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, remote)
	c.forgotten = append(c.forgotten, remote)
}

type rig struct {
	*state
	*counts
	v      *Vault
	k      *Keys
	logs   bytes.Buffer
	dials  int
	secure bool
}

func newRig(t *testing.T, remotes ...meta.Remote) *rig {
	t.Helper()
	r := &rig{state: &state{changed: make(chan struct{}), version: 1, remotes: remotes}, counts: &counts{states: map[string]string{}}, k: keys(t, secretA, ""), secure: true}
	guard, err := outbound.NewGuard([]int{7942}, nil, nil)
	require.NoError(t, err)
	dial := func(context.Context, string, string, func(string, string) error) (net.Conn, error) {
		r.dials++
		return nil, net.ErrClosed
	}
	r.v = New(Options{State: r.state, Keys: r.k, Guard: guard, Dial: dial, Secure: func() bool { return r.secure }, Logger: slog.New(slog.NewTextHandler(&r.logs, nil)), Observer: r.counts})
	t.Cleanup(func() {
		for _, secret := range []string{canary, secretA, record().URL} {
			require.NotContains(t, r.logs.String(), secret)
		}
	})
	return r
}

// covers: CRD-07, CRD-09
func TestOneDecryptPerCredentialVersion(t *testing.T) {
	k := keys(t, secretA, "")
	one := sealed(t, k, record())
	r := newRig(t, one)
	first := r.v.Entry("dr")
	require.Empty(t, first.State)
	require.NotNil(t, first.Client)
	require.EqualValues(t, 1, first.CredentialVersion)
	require.Equal(t, 1, r.decrypts)

	for range 3 {
		require.Same(t, first.Client, r.v.Entry("dr").Client)
	}
	two := record()
	two.Name, two.ID = "dr2", "00000000000000bb"
	two = sealed(t, k, two)
	r.set(2, one, two)
	require.Same(t, first.Client, r.v.Entry("dr").Client, "another remote's create")
	require.Equal(t, 2, r.decrypts)

	limits := one
	limits.Limits.RequestTimeoutMS, limits.Revision = 5000, 2
	r.set(3, limits, two)
	second := r.v.Entry("dr")
	require.NotSame(t, first.Client, second.Client)
	require.EqualValues(t, 5000, second.Limits.RequestTimeoutMS)
	require.Equal(t, 2, r.decrypts, "limits need no decrypt")

	limits.Limits.MaxInFlight = 3
	r.set(4, limits, two)
	require.Same(t, second.Client, r.v.Entry("dr").Client)
	require.Equal(t, 3, r.v.Entry("dr").Limits.MaxInFlight)

	changed := r.v.Changed()
	again := sealed(t, k, limits) // a re-encrypt: another ciphertext of the same version
	r.set(5, again, two)
	require.Same(t, second.Client, r.v.Entry("dr").Client)
	require.Equal(t, 2, r.decrypts)
	require.NotPanics(t, func() {
		select {
		case <-changed:
			t.Error("a re-encrypt replaces nothing (DEC-32)")
		default:
		}
	})

	password := again
	password.CredentialVersion, password.SetAtMS = 2, 5
	r.set(6, sealed(t, k, password), two)
	require.NotSame(t, second.Client, r.v.Entry("dr").Client)
	require.EqualValues(t, 2, r.v.Entry("dr").CredentialVersion)
	require.Equal(t, 3, r.decrypts)
	<-changed

	// BR-29: a restored snapshot brings the version back, with what was sealed then.
	r.set(2, again, two)
	require.EqualValues(t, 1, r.v.Entry("dr").CredentialVersion)
	require.Equal(t, 4, r.decrypts)
	other := again
	other.SetAtMS = 9
	r.set(3, other, two)
	r.v.Entry("dr")
	require.Equal(t, 5, r.decrypts, "one version, two histories")
}

// covers: CRD-08
func TestADeletedRemoteIsDropped(t *testing.T) {
	r := newRig(t, sealed(t, keys(t, secretA, ""), record()))
	client := r.v.Entry("dr").Client
	_, err := client.Do(t.Context(), &outbound.Request{Method: "GET", Path: "/"})
	require.ErrorAs(t, err, new(*outbound.Failure))
	require.Equal(t, 1, r.dials)
	changed := r.v.Changed()
	r.set(2)
	require.Equal(t, Entry{State: wire.RemoteMissing}, r.v.Entry("dr"))
	<-changed
	var f *outbound.Failure
	_, err = client.Do(t.Context(), &outbound.Request{Method: "GET", Path: "/"})
	require.ErrorAs(t, err, &f)
	require.Equal(t, outbound.Canceled, f.Class)
	require.Equal(t, 1, r.dials, "the old client sends nothing any more")
	require.Equal(t, []string{"dr"}, r.forgotten)
	require.Empty(t, r.states)
}

// covers: CRD-15
func TestWhatCannotSendSaysWhy(t *testing.T) {
	foreign := sealed(t, keys(t, secretB, ""), record())
	r := newRig(t, foreign)
	require.Equal(t, wire.CredentialUnreadable, r.v.Entry("dr").State)
	require.Nil(t, r.v.Entry("dr").Client)
	require.Equal(t, wire.CredentialNotReadable, r.states["dr"])
	require.Equal(t, 1, strings.Count(r.logs.String(), "cannot be opened"))
	r.set(2, foreign)
	r.v.Entry("dr")
	require.Equal(t, 1, strings.Count(r.logs.String(), "cannot be opened"), "told once")
	r.set(3, sealed(t, r.k, record())) // re-encrypted under a key that is here
	require.Empty(t, r.v.Entry("dr").State)
	require.Equal(t, wire.CredentialReady, r.states["dr"])

	r.secure = false
	r.set(4, sealed(t, r.k, record()))
	require.Equal(t, wire.NodeInsecure, r.v.Entry("dr").State)
	require.Nil(t, r.v.Entry("dr").Client)
	require.Equal(t, 1, r.decrypts)

	tampered := sealed(t, r.k, record())
	tampered.URL = "https://elsewhere.test:7942"
	r.secure = true
	r.set(5, tampered)
	require.Equal(t, wire.CredentialUnreadable, r.v.Entry("dr").State)
	require.Zero(t, r.dials)
}

// covers: CRD-07
func TestRunRebuildsAndStops(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.v.Run(ctx) }()
	changed := r.v.Changed()
	r.set(2, sealed(t, r.k, record()))
	<-changed // without a call of Entry
	require.Empty(t, r.v.Entry("dr").State)
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, wire.RemoteMissing, r.v.Entry("dr").State)
}
