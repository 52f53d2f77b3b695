package link

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/remote/outbound"
	"narad.example/narad/wire"
)

// passing is a member's report that all is well.
func passing(targetID string) CheckReply {
	return CheckReply{Report: wire.Check{Result: "pass", CredentialVersion: 1, Posture: sound()}, TargetID: targetID}
}

func failing(class string) CheckReply {
	return CheckReply{Report: wire.Check{Result: "fail", Class: class, CredentialVersion: 1, Posture: sound()}}
}

// crowded is a rig among n2 and n3, which answer a check with answers, with the parent and the remote.
func crowded(t *testing.T, c *crew, change ...func(*Options)) *rig {
	t.Helper()
	c.postures = map[string]wire.Posture{"n2": *sound(), "n3": *sound()}
	r := newRig(t, append(change, func(o *Options) { o.Members = c })...)
	r.topic("orders", weekMS)
	r.remote("dr")
	return r
}

func allowing(t *testing.T) func(*Options) {
	t.Helper()
	guard, err := outbound.NewGuard([]int{7942}, []string{"example.com"}, nil)
	require.NoError(t, err)
	return func(o *Options) { o.Guard = guard }
}

// An attach has every member check; one that fails, disagrees, checks nothing or is silent refuses it with the failing reports, and the
// question names what all must hold.
//
// covers: TGT-01, TGT-02, TGT-09, TGT-10
func TestEveryMemberChecksAnAttach(t *testing.T) {
	const id = "00000000000000ff"
	for name, tc := range map[string]struct {
		n2, n3 CheckReply
		silent []string
		class  string
		kind   wire.Kind
		failed []string // the members whose reports come back
	}{
		"all well":           {n2: passing(id), n3: passing(id)},
		"one may not":        {n2: failing("forbidden"), n3: passing(id), class: "forbidden", kind: wire.Conflict, failed: []string{"n2"}},
		"one is behind":      {n2: passing(id), n3: failing("stale"), class: "stale", kind: wire.Precondition, failed: []string{"n3"}},
		"one is insecure":    {n2: failing("node_insecure"), n3: failing("edge"), class: "node_insecure", kind: wire.Precondition, failed: []string{"n2", "n3"}},
		"one cannot open it": {n2: failing("credential_unreadable"), n3: passing(id), class: "credential_unreadable", kind: wire.Precondition, failed: []string{"n2"}},
		"one reaches another topic": {
			n2: passing("00000000000000ee"), n3: passing(id), class: "target_disagreement", kind: wire.Precondition, failed: []string{"n2"},
		},
		"one knows no check":   {n2: passing(id), n3: CheckReply{}, class: "old_release", kind: wire.Precondition, failed: []string{"n3"}},
		"one has just made it": {n2: CheckReply{Report: passing(id).Report, Spaced: true}, n3: passing(id), kind: wire.Throttled},
		"one cannot reach it":  {n2: failing("unavailable"), n3: passing(id), class: "unavailable", kind: wire.Unavailable, failed: []string{"n2"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &crew{}
			r := crowded(t, c)
			parent, _ := r.raft.Topic("orders")
			remote, _ := r.raft.Remote("dr")
			var asked CheckAsk
			c.check = func(q CheckAsk) map[string]CheckReply {
				asked = q
				return map[string]CheckReply{"n2": tc.n2, "n3": tc.n3}
			}
			_, err := r.Attach(t.Context(), root, "orders", attach("c"))
			require.Equal(t, CheckAsk{
				Remote: "dr", RemoteID: remote.ID, CredentialVersion: 1, Topic: "orders", Parent: "orders", ParentID: parent.ID,
			}, asked)
			if tc.kind == 0 {
				require.NoError(t, err)
				stub, _ := r.raft.Topic("c")
				require.Equal(t, id, stub.Remote.TargetID)
				return
			}
			p := r.refusal(err, tc.kind)
			require.Empty(t, r.raft.Children("orders"))
			if tc.kind == wire.Throttled {
				require.Positive(t, p.RetryAfter)
				return
			}
			require.Equal(t, tc.class, p.Fields["class"])
			var failed []string
			for _, report := range p.Fields["checks"].([]wire.Check) {
				require.Equal(t, "fail", report.Result)
				failed = append(failed, report.Node)
			}
			require.Equal(t, tc.failed, failed)
		})
	}
}

// A member that answers its posture and no check in time is unreachable to a test, which needs no posture of it beforehand.
//
// covers: TGT-01, TGT-09
func TestATestShowsEveryMember(t *testing.T) {
	c := &crew{check: func(CheckAsk) map[string]CheckReply { return map[string]CheckReply{"n2": passing("00000000000000ff")} }}
	r := crowded(t, c, allowing(t))
	c.silent = []string{"n3"}
	got, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders", Source: "orders"})
	require.NoError(t, err)
	require.Equal(t, "fail", got.Result)
	require.Equal(t, "unreachable", got.Class)
	require.Len(t, got.Checks, 3)
	require.Equal(t, "00000000000000ff", got.Checks[0].TargetID)
	require.Equal(t, wire.Check{Node: "n3", Result: "fail", Class: "unreachable"}, got.Checks[2])
}

// Without an allowlist a test and a dry run ask one node alone; an attach and a resume ask everybody all the same.
//
// covers: TGT-01, TGT-12
func TestWithoutAnAllowlistOneNodeChecks(t *testing.T) {
	asked := 0
	c := &crew{check: func(CheckAsk) map[string]CheckReply {
		asked++
		return map[string]CheckReply{"n2": passing("00000000000000ff"), "n3": passing("00000000000000ff")}
	}}
	r := crowded(t, c)
	_, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"})
	require.NoError(t, err)
	dry := attach("c")
	dry.DryRun = true
	got, err := r.Attach(t.Context(), root, "orders", dry)
	require.NoError(t, err)
	require.Nil(t, got.Capabilities)
	require.Equal(t, []wire.Check{{Node: "n1", Result: "pass", CredentialVersion: 1, Posture: sound()}}, got.Checks)
	require.Zero(t, asked)
	_, err = r.Attach(t.Context(), root, "orders", attach("c"))
	require.NoError(t, err)
	_, err = r.Resume(t.Context(), root, "orders", "c", false)
	require.NoError(t, err)
	require.Equal(t, 2, asked)
}

// A dry run with an allowlist answers the offsets, every member's report, what the target takes and what is to be warned of, and
// writes nothing.
//
// covers: TGT-12, RUN-09
func TestADryRunTellsEverything(t *testing.T) {
	warned := passing("")
	warned.Report.Warnings = []string{"its certificate expires", olderRelease}
	c := &crew{check: func(CheckAsk) map[string]CheckReply { return map[string]CheckReply{"n2": warned, "n3": warned} }}
	r := crowded(t, c, allowing(t))
	r.target = func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/v1/topics/orders/children" {
			answer(200, `{"parent":"orders","children":[]}`)(w, req) // a release before remote children
			return
		}
		answer(200, `{"name":"orders"}`)(w, req)
	}
	index := r.raft.index
	dry := attach("c")
	dry.DryRun = true
	got, err := r.Attach(t.Context(), root, "orders", dry)
	require.NoError(t, err)
	require.Equal(t, []int64{10, 11, 12}, got.AttachOffsets)
	require.Equal(t, &wire.Capabilities{MaxMessages: 1000, Zstd: true}, got.Capabilities)
	require.Equal(t, []string{olderRelease, "its certificate expires"}, got.Warnings)
	require.Len(t, got.Checks, 3)
	require.Equal(t, index, r.raft.index)

	r.door = func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Content-Encoding") == "zstd" {
			answer(503, `{"error":"x"}`)(w, req)
			return
		}
		goodDoor(w, req)
	}
	_, err = r.Attach(t.Context(), root, "orders", dry)
	require.Equal(t, "unavailable", r.refusal(err, wire.Unavailable).Fields["class"])
}

// What the target lets somebody without a credential, without a grant or with an admin's see has a class of its own.
//
// covers: TGT-04, TGT-07, TGT-08, TGT-10
func TestTheTargetsDoor(t *testing.T) {
	for class, tc := range map[string]struct {
		door http.HandlerFunc
		kind wire.Kind
	}{
		"target_security_off": {func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") == "" {
				topicAnswer(`{"name":"orders","id":"1"}`)(w, req)
				return
			}
			goodDoor(w, req)
		}, wire.Conflict},
		"admin_credential": {func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Path == "/v1/users" {
				answer(200, `[{"username":"`+canary+`"}]`)(w, req)
				return
			}
			goodDoor(w, req)
		}, wire.Conflict},
		"forbidden": {func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPost {
				answer(403, `{"error":"`+canary+`"}`)(w, req)
				return
			}
			goodDoor(w, req)
		}, wire.Conflict},
		"no_batch_produce": {func(w http.ResponseWriter, req *http.Request) {
			if req.Method == http.MethodPost {
				http.NotFound(w, req)
				return
			}
			goodDoor(w, req)
		}, wire.Conflict},
	} {
		t.Run(class, func(t *testing.T) {
			r := newRig(t)
			r.topic("orders", weekMS)
			r.remote("dr")
			r.door = tc.door
			_, err := r.Attach(t.Context(), root, "orders", attach("c"))
			p := r.refusal(err, tc.kind)
			require.Equal(t, class, p.Fields["class"])
			require.Empty(t, r.raft.Children("orders"))
		})
	}
}

// A member that is asked checks under the credential that was asked for, with its own; what it has otherwise is stale, and what it may not
// have is said before anything is asked of the target.
//
// covers: TGT-01, TGT-02
func TestWhatAMemberAnswers(t *testing.T) {
	r := newRig(t)
	parent := r.topic("orders", weekMS)
	r.remote("dr")
	remote, _ := r.raft.Remote("dr")
	good := CheckAsk{Remote: "dr", RemoteID: remote.ID, CredentialVersion: 1, Topic: "orders", Parent: "orders", ParentID: parent.ID}
	got := r.ServeCheck(t.Context(), good)
	require.Equal(t, CheckReply{Report: wire.Check{Node: "n1", Result: "pass", CredentialVersion: 1, Posture: sound()}, TargetID: "00000000000000ff"}, got)

	requests := 0
	r.target = func(http.ResponseWriter, *http.Request) { requests++ }
	for name, change := range map[string]func(*CheckAsk){
		"another remote of the name": func(q *CheckAsk) { q.RemoteID = meta.NewID() },
		"a newer credential":         func(q *CheckAsk) { q.CredentialVersion = 2 },
		"another parent":             func(q *CheckAsk) { q.ParentID = meta.NewID() },
	} {
		q := good
		change(&q)
		require.Equal(t, "stale", r.ServeCheck(t.Context(), q).Report.Class, name)
	}
	q := good
	q.Remote = "none"
	require.Equal(t, "remote_missing", r.ServeCheck(t.Context(), q).Report.Class)
	r.o.Settings.LegacyClusterAuth = true
	got = r.ServeCheck(t.Context(), good)
	require.Equal(t, "node_insecure", got.Report.Class)
	require.True(t, got.Report.Posture.LegacyClusterAuth)
	require.Zero(t, requests)
	r.o.Settings.LegacyClusterAuth = false
	r.target = answer(429, `{"error":"`+canary+`"}`)
	got = r.ServeCheck(t.Context(), good)
	require.Equal(t, "throttled", got.Report.Class)
}

// A member that is asked a moment too early waits for its own spacing, and refuses when that is long.
//
// covers: TGT-13
func TestAMemberWaitsOutItsSpacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spacing{every: 5 * time.Second, last: map[string]time.Time{}}
		require.NoError(t, s.take("a"))
		time.Sleep(4500 * time.Millisecond)
		began := time.Now()
		require.NoError(t, s.takeSoon(t.Context(), "a", memberPatience))
		require.Equal(t, 500*time.Millisecond, time.Since(began))
		require.Error(t, s.takeSoon(t.Context(), "a", memberPatience))
		require.Equal(t, 500*time.Millisecond, time.Since(began))
	})
}
