package link

import (
	"context"
	"errors"
	"time"

	"narad.example/narad/audit"
	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/remote/vault"
	"narad.example/narad/wire"
)

// Reader is what is read of the metadata; *meta.State is one.
type Reader interface {
	Topic(name string) (meta.Topic, bool)
	Children(parent string) []meta.Topic
	Remote(name string) (meta.Remote, bool)
	Remotes() []meta.Remote
	Links(remote string) []meta.Topic
	Salt() []byte
	Trail() []meta.Trace
}

// Raft is how the metadata is changed; *meta.Store is one.
type Raft interface {
	// ProposeLocal proposes an encoded entry on the leader and returns once it is applied there.
	ProposeLocal(ctx context.Context, entry []byte) (index uint64, err error)
	WaitApplied(ctx context.Context, index uint64) error
	Barrier(ctx context.Context) error
	ReleaseGate() error
	IsLeader() bool
	Term() uint64
	LeaderMoved() <-chan struct{} // closed at the next change of who leads
}

// OpRemoteWrite is the node RPC that carries a write to the leader; its handler is Service.ServeRemoteWrite.
const OpRemoteWrite = "RemoteWrite"

// Leader carries a RemoteWrite to the leader: to this node's ServeRemoteWrite when it leads, else by the node RPC. It sends
// the body at most once. A *wire.Problem is the leader's refusal, or says that nothing was sent; any other error leaves the
// outcome unknown.
type Leader interface {
	RemoteWrite(ctx context.Context, body []byte) ([]byte, error)
}

// Fan asks every owner of the parent's partitions where a link starts (CUR-05). An owner that cannot be asked is an error.
type Fan interface {
	StartOffsets(ctx context.Context, parent meta.Topic, from string) ([]int64, error)
}

// Backlog reads every member's ingress backlog of a topic (UNS-01).
type Backlog interface {
	Backlog(ctx context.Context, topic meta.Topic) BacklogReport
}

// BacklogReport is what the members answered. A member stands in exactly one of the three.
type BacklogReport struct {
	Nodes        map[string]int64 // records accepted and not committed, by member
	NotAnswering []string
	OverLimit    []string // members that could not read their backlog to its end (UNS-03)
}

// Lag reads every owner's cursor lag of a link (UNS-01).
type Lag interface {
	Lag(ctx context.Context, child meta.Topic) LagReport
}

// LagReport is what the owners answered. Complete is false when an owner did not answer, or answered without the partition or
// without a cursor of this epoch (UNS-02).
type LagReport struct {
	Messages     int64
	Complete     bool
	NotAnswering []string
}

// Vault is the node's credential cache; *vault.Vault is one.
type Vault interface {
	Entry(remote string) vault.Entry
}

// Auditor writes audit lines and tells whether they stand; *audit.Log is one.
type Auditor interface {
	Write(ctx context.Context, line audit.Line) bool
}

// Health tells how a remote fared on this node, as GET /v1/remotes shows it.
type Health interface {
	Remote(name string) (lastOK time.Time, lastError string) // the zero time for never; a class, "" when clean
}

// Settings are the node's settings that gate a write.
type Settings struct {
	Security          bool // security.enabled
	LegacyClusterAuth bool // security.allow_legacy_cluster_auth
	APIHopEncrypted   bool // remotes.api_hop_encrypted
	RaftTLS           bool // cluster.tls_cert_file is set
}

// Cursors asks the owner of a parent partition what its cursor of a link is stuck on.
type Cursors interface {
	// Blocked returns the records that lanes are stuck on, the lowest offset first. An owner that is down or cannot be reached, or
	// that runs no cursor of this attach epoch, is an error.
	Blocked(ctx context.Context, parent, child meta.Topic, partition int) ([]wire.BlockedAt, error)
}

// Options of a Service. All are needed but Health, Members, Admin, Refused, Unaudited, Rates and Now.
type Options struct {
	NodeID   string
	State    Reader
	Raft     Raft
	Leader   Leader
	Vault    Vault
	Keys     *vault.Keys
	Guard    *outbound.Guard
	Fan      Fan
	Backlog  Backlog
	Lag      Lag
	Cursors  Cursors
	Audit    Auditor
	Health   Health                           // nil shows nothing
	Members  Members                          // nil on a node alone
	Admin    func(user string) bool           // asked by the leader again; nil believes the node that took the write
	View     func(stub meta.Topic) wire.Topic // record to answer shape (cluster.View)
	Settings Settings
	Rates    Rates
	Now      func() time.Time // the node's wall clock: stamps, ages, expiry of certificates (DEC-15); nil is time.Now

	// Refused hears of each check that failed, under which credential version and with which error of package target (DEC-48);
	// nil for nobody.
	Refused func(remote string, credentialVersion uint64, err error)
	// Unaudited is called on the leader when the entry of a request is committed and none of its audit lines is written; nil for nobody.
	Unaudited func(requestID string, index uint64)
}

// Caller is who asks.
type Caller struct {
	Name      string
	Admin     bool
	RequestID string
}

// Service is the remote plane's writes and reads. It is safe for concurrent use.
type Service struct {
	*site
	seat         *seat
	remoteWrites window
	childWrites  window
}

// site is this node: its settings, its replica, and the checks that the node which took a write and the leader both make.
type site struct {
	o      Options
	checks spacing
}

// seat is what this node does while it leads.
type seat struct {
	*site
	turn  chan struct{} // holds one: the right to propose
	gate  *checkGate
	trail *trail
}

// New makes the service.
func New(o Options) *Service {
	rates := o.Rates.filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	here := &site{o: o, checks: spacing{every: rates.CheckEvery, last: map[string]time.Time{}}}
	return &Service{
		site: here, seat: &seat{site: here, turn: make(chan struct{}, 1), gate: newCheckGate(), trail: &trail{wrote: map[uint64]bool{}}},
		remoteWrites: window{most: rates.RemoteWrites}, childWrites: window{most: rates.ChildWrites},
	}
}

const (
	checkTime   = 15 * time.Second // TGT-01
	backlogTime = 15 * time.Second // UNS-03
	lagTime     = 5 * time.Second  // UNS-04
	applyTime   = 5 * time.Second  // until the answering node has applied what the leader committed
	retrySoon   = 2 * time.Second
	ownerTime   = 2 * time.Second // until an owner has said what its cursor is stuck on
)

// takeTurn waits for the right to propose; the returned function gives it back.
func (s *seat) takeTurn(ctx context.Context) (func(), error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, wire.Refuse(wire.Unavailable, "the leader is busy with other remote writes; try again").After(retrySoon)
	}
}

// posture refuses while this node must not have remotes (WRT-03, CRD-15).
func (s *site) posture() error {
	switch {
	case !s.o.Settings.Security:
		return wire.Refuse(wire.Denied, "remotes require security")
	case s.o.Settings.LegacyClusterAuth:
		return wire.Refuse(wire.Precondition, "remotes require security.allow_legacy_cluster_auth to be off").
			With("class", string(wire.NodeInsecure)).With("members", []string{s.o.NodeID})
	}
	return nil
}

// admin refuses everyone else.
func admin(c Caller) error {
	if !c.Admin {
		return wire.Refuse(wire.Denied, "only an admin may do this")
	}
	return nil
}

// firstError returns the first refusal of checks that run in order; none runs after it.
func firstError(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func unknownOutcome() error {
	return wire.Refuse(wire.Unavailable, "the outcome is unknown: the change may still be applied")
}

// errOpen is what propose returns when nobody knows whether the entry will be applied.
var errOpen = errors.New("link: the outcome of the proposal is open")

// open tells whether an error of a proposal leaves its outcome open. The metadata's own refusals are Problems; the one for an open
// outcome is Unavailable and asks for no retry, since a retry could meet its own change.
func open(err error) bool {
	var p *wire.Problem
	if !errors.As(err, &p) {
		return !errors.Is(err, meta.ErrNotLeader)
	}
	return p.Kind == wire.Unavailable && p.RetryAfter == 0
}
