package target

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// Error is why a target could not be read. Class is a link state or EdgeClass, as check reports carry it (api.md, check
// classes). Its text names the class alone.
type Error struct {
	Reading
	Class      string
	State      wire.LinkState
	RetryAfter time.Duration // of a 429, 0 for the gate's own backoff
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return "target: " + e.Class
	}
	return fmt.Sprintf("target: %s (status %d)", e.Class, e.Status)
}

// Info is what a target says of its topic.
type Info struct {
	Exists        bool
	ID            string // empty on a release without topic IDs (v2.1 and earlier)
	Stub          bool   // a remote child: it takes no produce
	DelayChild    bool   // takes no produce either
	SchemaVersion int
	Schema        json.RawMessage
}

// Topic reads GET /v1/topics/{t}. A topic that is not there is an Info without Exists, no error. The error is an *Error.
func Topic(ctx context.Context, c Doer, topic string) (Info, error) {
	var d wire.TopicDetail
	if e := get(ctx, c, topicPath(topic), &d); e != nil {
		if e.Row == "ANS-10" {
			return Info{}, nil
		}
		return Info{}, e
	}
	if d.Name == "" {
		return Info{}, edge(http.StatusOK)
	}
	return Info{
		Exists: true, ID: d.ID, Stub: d.Remote != nil, DelayChild: d.FanoutDelayMS > 0,
		SchemaVersion: d.SchemaVersion, Schema: d.Schema,
	}, nil
}

// Listing reads GET /v1/topics/{t}/children. ParentID is empty and no entry is remote on a release before remote children
// (RUN-09). The error is an *Error; a target without the topic is ANS-10.
func Listing(ctx context.Context, c Doer, topic string) (wire.Children, error) {
	var l struct {
		Parent   string             `json:"parent"`
		ParentID string             `json:"parent_id"`
		Children *[]wire.ChildEntry `json:"children"`
	}
	if e := get(ctx, c, topicPath(topic)+"/children", &l); e != nil {
		return wire.Children{}, e
	}
	if l.Children == nil || l.Parent == "" {
		return wire.Children{}, edge(http.StatusOK)
	}
	return wire.Children{Parent: l.Parent, ParentID: l.ParentID, Children: *l.Children}, nil
}

// get sends one GET and decodes its 200.
func get(ctx context.Context, c Doer, path string, into any) *Error {
	a, r := send(ctx, c, &outbound.Request{Method: http.MethodGet, Path: path})
	if r.Row == RowNone && r.Status == http.StatusOK && DecodeJSON(a, into) {
		return nil
	}
	return refused(a, r) // another answer than this route has was given by something in front
}

// requestID is a fresh ID, so that a late answer to another request is never taken for this one's (SND-14).
func requestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

func edge(status int) *Error {
	return &Error{
		Reading: Reading{Row: "ANS-19", Status: status, Edge: true}, Class: EdgeClass, State: wire.TargetUnavailable,
	}
}
