package vault

import (
	"bytes"
	"context"
	"encoding/base64"
	"log/slog"
	"sync"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// State is what the vault reads of the metadata; *meta.State is one.
type State interface {
	Remotes() []meta.Remote
	RemotesVersion() uint64
	Salt() []byte
	Changed() <-chan struct{}
}

// Observer is told what the metrics show; its methods must not block.
type Observer interface {
	Decrypted(remote string)         // narad_remote_credential_decrypts_total
	Credential(remote, state string) // narad_remote_credential_state, with a state of wire.CredentialReady, ...
	// Dialed is a new connection: the time of TCP and TLS for narad_remote_rtt_seconds, or the rule that refused it for
	// narad_remote_destination_refused_total.
	Dialed(remote string, took time.Duration, refused string)
	Forgotten(remote string) // the remote is gone, and its series with it
}

// Options of a Vault. State, Keys and Guard are needed.
type Options struct {
	State    State
	Keys     *Keys
	Guard    *outbound.Guard
	Dial     outbound.DialFunc // nil is the operating system's network
	Now      func() time.Time  // the node's wall clock; nil is time.Now
	Secure   func() bool       // whether this node's posture allows remotes (CRD-15); nil allows
	Logger   *slog.Logger
	Observer Observer
}

// Entry is a remote as this node can use it. State is empty when Client is ready to send; else it is why nothing is sent:
// wire.RemoteMissing, wire.CredentialUnreadable (DEC-12) or wire.NodeInsecure, and Client is nil.
type Entry struct {
	Client            *outbound.Client
	State             wire.LinkState
	CredentialVersion uint64
	Limits            wire.Limits
	ID                string
}

// cached is an entry with what it was built from.
type cached struct {
	entry  Entry
	record meta.Remote
	auth   string // the ready Authorization value
}

// Vault is the node's cache. It is safe for concurrent use.
type Vault struct {
	o  Options
	wg sync.WaitGroup // waits for the connections of retired clients

	mu      sync.Mutex // guards all below
	entries map[string]*cached
	version uint64        // of the remotes that entries were built from
	built   bool          // entries were built at least once
	stopped bool          // Run has ended: nothing is built any more
	changed chan struct{} // closed when any entry is replaced
}

// New builds the cache from the present state.
func New(o Options) *Vault {
	if o.Secure == nil {
		o.Secure = func() bool { return true }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	v := &Vault{o: o, entries: map[string]*cached{}, changed: make(chan struct{})}
	v.refresh()
	return v
}

// Run rebuilds entries when the remotes version moves, until ctx ends. Then it closes every client and waits for requests on the
// wire to end.
func (v *Vault) Run(ctx context.Context) error {
	for {
		moved := v.o.State.Changed()
		v.refresh()
		select {
		case <-moved:
		case <-ctx.Done():
			v.stop()
			return nil
		}
	}
}

func (v *Vault) stop() {
	v.mu.Lock()
	v.stopped = true
	entries := v.entries
	v.entries = map[string]*cached{}
	v.mu.Unlock()
	for _, c := range entries {
		v.retire(c)
	}
	v.wg.Wait()
}

// Entry returns the remote as it stands in this node's metadata now.
func (v *Vault) Entry(remote string) Entry {
	v.refresh()
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.entries[remote]; c != nil {
		return c.entry
	}
	return Entry{State: wire.RemoteMissing}
}

// Changed returns a channel that is closed when any entry is replaced next. Take it before Entry.
func (v *Vault) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// refresh rebuilds when the remotes version has moved, in either direction: a restored snapshot may bring an older one (BR-29).
func (v *Vault) refresh() {
	version := v.o.State.RemotesVersion() // before the records: a later move is seen again
	v.mu.Lock()
	if v.stopped || v.built && v.version == version {
		v.mu.Unlock()
		return
	}
	v.version, v.built = version, true
	old := v.entries
	v.entries = make(map[string]*cached, len(old))
	replaced := false
	for _, r := range v.o.State.Remotes() {
		c := v.build(r, old[r.Name])
		v.entries[r.Name] = c
		replaced = replaced || c != old[r.Name]
	}
	var gone []*cached
	for name, c := range old {
		now := v.entries[name]
		if now == nil {
			replaced = true
			v.forgotten(name)
		}
		if now == nil || now.entry.Client != c.entry.Client {
			gone = append(gone, c)
		}
	}
	if replaced {
		close(v.changed)
		v.changed = make(chan struct{})
	}
	v.mu.Unlock()
	for _, c := range gone {
		v.retire(c)
	}
}

// retire closes a client's idle connections; the others close after their request (CRD-08, DEC-11).
func (v *Vault) retire(c *cached) {
	if c.entry.Client == nil {
		return
	}
	c.entry.Client.Close()
	v.wg.Go(c.entry.Client.Wait)
}

// build returns the entry of a record: the old one when nothing of it has changed, the old credential in a new client when only
// the limits of the transport have (CRD-07), else one whose password is opened now.
func (v *Vault) build(r meta.Remote, old *cached) *cached {
	c := &cached{record: r, entry: Entry{ID: r.ID, CredentialVersion: r.CredentialVersion, Limits: r.Limits}}
	same := old != nil && sameCredential(&old.record, &r)
	switch {
	case !v.o.Secure():
		c.entry.State = wire.NodeInsecure
	case same && old.auth != "":
		c.auth = old.auth
		if sameTransport(old.record.Limits, r.Limits) {
			c.entry.Client = old.entry.Client
		}
	case same && old.entry.State == wire.CredentialUnreadable && bytes.Equal(old.record.Ciphertext, r.Ciphertext):
		c.entry.State = old.entry.State // it will not open now either
	default:
		c.auth, c.entry.State = v.authorization(&r)
	}
	if c.entry.State == "" && c.entry.Client == nil {
		v.connect(c)
	}
	if old != nil && c.entry == old.entry {
		old.record = r // a re-encrypt changes nothing but the record (DEC-32)
		return old
	}
	v.observe(c)
	return c
}

// connect gives the entry its client. A record that gives none holds a URL or bundle that this release does not take.
func (v *Vault) connect(c *cached) {
	l := c.record.Limits
	var dialed func(time.Duration, string)
	if name := c.record.Name; v.o.Observer != nil {
		dialed = func(took time.Duration, refused string) { v.o.Observer.Dialed(name, took, refused) }
	}
	client, err := outbound.New(outbound.Config{
		Dialed: dialed,
		URL:    c.record.URL, Authorization: c.auth, CAPEM: c.record.CAPEM, Guard: v.o.Guard, Dial: v.o.Dial, Now: v.o.Now,
		RequestTimeout: ms(l.RequestTimeoutMS), IdleTimeout: ms(l.IdleConnTimeoutMS), ConnMaxAge: ms(l.ConnMaxAgeMS),
	})
	if err != nil {
		c.auth, c.entry.State = "", wire.CredentialUnreadable
		return
	}
	c.entry.Client = client
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// authorization opens the password and makes the value of the header, or says in a state that it does not open.
func (v *Vault) authorization(r *meta.Remote) (auth string, state wire.LinkState) {
	password, err := v.o.Keys.Open(v.o.State.Salt(), r)
	if err != nil {
		v.o.Logger.Error("the credential of a remote cannot be opened", "remote", r.Name,
			"credential_version", r.CredentialVersion, "cause", err)
		return "", wire.CredentialUnreadable
	}
	if v.o.Observer != nil {
		v.o.Observer.Decrypted(r.Name)
	}
	plain := make([]byte, 0, len(r.Username)+1+len(password))
	plain = append(append(append(plain, r.Username...), ':'), password...)
	wipe(password)
	defer wipe(plain)
	return "Basic " + base64.StdEncoding.EncodeToString(plain), ""
}

func (v *Vault) observe(c *cached) {
	if v.o.Observer == nil {
		return
	}
	state := wire.CredentialReady
	switch c.entry.State {
	case wire.CredentialUnreadable:
		state = wire.CredentialNotReadable
	case wire.NodeInsecure:
		state = wire.CredentialNodeInsecure
	}
	v.o.Observer.Credential(c.record.Name, state)
}

func (v *Vault) forgotten(remote string) {
	if v.o.Observer != nil {
		v.o.Observer.Forgotten(remote)
	}
}

// sameCredential tells whether what was opened for a is what b holds. The ciphertext is not compared, since a re-encrypt
// changes it alone; who set the password when tells two histories of one version apart (BR-29).
func sameCredential(a, b *meta.Remote) bool {
	return a.CredentialVersion == b.CredentialVersion && a.Name == b.Name && a.ID == b.ID && a.URL == b.URL &&
		a.Username == b.Username && a.CAPEM == b.CAPEM && a.SetAtMS == b.SetAtMS && a.SetBy == b.SetBy
}

// sameTransport tells whether a client built for a serves b; the other limits are the sender's.
func sameTransport(a, b wire.Limits) bool {
	return a.RequestTimeoutMS == b.RequestTimeoutMS && a.IdleConnTimeoutMS == b.IdleConnTimeoutMS && a.ConnMaxAgeMS == b.ConnMaxAgeMS
}
