package wire

// LinkState is what a link, or one cursor of it, is doing (seed: What each answer does; LST-03).
type LinkState string

// The states, worst first: a fold of several cursors shows the first of them that any has (LST-03).
const (
	RemoteMissing           LinkState = "remote_missing"
	CredentialUnreadable    LinkState = "credential_unreadable"
	NodeInsecure            LinkState = "node_insecure"
	DestinationRefused      LinkState = "destination_refused"
	TargetHasRemoteChildren LinkState = "target_has_remote_children"
	TargetReplaced          LinkState = "target_replaced"
	AuthFailed              LinkState = "auth_failed"
	Forbidden               LinkState = "forbidden"
	TargetMissing           LinkState = "target_missing"
	NoBatchProduce          LinkState = "no_batch_produce"
	RedirectRefused         LinkState = "redirect_refused"
	TLSFailed               LinkState = "tls_failed"
	RejectedRecord          LinkState = "rejected_record"
	RecordTooLarge          LinkState = "record_too_large"
	TargetUnavailable       LinkState = "unavailable"
	TargetThrottled         LinkState = "throttled"
	UnknownState            LinkState = "unknown"
	Paused                  LinkState = "paused"
	Running                 LinkState = "running"
)

// LinkStates lists every state, worst first (LST-03).
var LinkStates = []LinkState{
	RemoteMissing, CredentialUnreadable, NodeInsecure, DestinationRefused, TargetHasRemoteChildren, TargetReplaced,
	AuthFailed, Forbidden, TargetMissing, NoBatchProduce, RedirectRefused, TLSFailed, RejectedRecord, RecordTooLarge,
	TargetUnavailable, TargetThrottled, UnknownState, Paused, Running,
}

var rank = func() map[LinkState]int {
	m := make(map[LinkState]int, len(LinkStates))
	for i, s := range LinkStates {
		m[s] = i
	}
	return m
}()

// Worse returns the one of two states that stands first in LST-03's order. An unknown spelling counts as UnknownState.
func Worse(a, b LinkState) LinkState {
	if a.Rank() <= b.Rank() {
		return a
	}
	return b
}

// Rank is the place of s in LinkStates, 0 the worst.
func (s LinkState) Rank() int {
	if r, ok := rank[s]; ok {
		return r
	}
	return rank[UnknownState]
}

// NeedsFix tells whether a person must do something before the link goes on: such a stall is logged as an error, the others
// as a warning at most once a minute (LOG-04).
func (s LinkState) NeedsFix() bool {
	switch s {
	case TargetUnavailable, TargetThrottled, UnknownState, Paused, Running:
		return false
	}
	return true
}
