package link

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// linked is a rig with the link orders/c.
func linked(t *testing.T, change ...func(*Options)) *rig {
	r := newRig(t, change...)
	r.topic("orders", weekMS)
	r.topic("plain", weekMS)
	r.remote("dr")
	_, err := r.Attach(t.Context(), root, "orders", attach("c"))
	require.NoError(t, err)
	return r
}

func (r *rig) link() meta.Topic {
	r.t.Helper()
	stub, ok := r.raft.Topic("c")
	require.True(r.t, ok)
	return stub
}

func (r *rig) stored() int { return len(r.raft.entries) }

// covers: WRT-01, WRT-11, WRT-12
func TestPauseAndResume(t *testing.T) {
	r := linked(t)
	reason := strings.Repeat("~", wire.MaxPauseReason)
	got, err := r.Pause(t.Context(), root, "orders", "c", reason)
	require.NoError(t, err)
	require.True(t, got.Remote.Paused)
	require.Equal(t, reason, got.Remote.PauseReason)
	require.Equal(t, "admin", got.Remote.PausedBy)
	require.InDelta(t, time.Now().UnixMilli(), got.Remote.PausedAtMS, 60_000)
	require.Equal(t, r.link().AttachEpoch, got.AttachEpoch)

	got, err = r.Resume(t.Context(), root, "orders", "c", false)
	require.NoError(t, err)
	require.False(t, got.Remote.Paused)
	require.Empty(t, got.Remote.PausedBy)
	require.Empty(t, r.link().Remote.PauseReason)
	short, whole := r.lines()
	require.Equal(t, []string{"remote_child.pause orders/c committed", "remote_child.resume orders/c committed"}, short[2:])
	for _, line := range whole[2:] {
		require.Equal(t, root.RequestID, line["request_id"])
		require.Equal(t, "admin", line["actor"])
		require.Positive(t, line["index"])
		require.NotContains(t, line, "status")
	}
}

// covers: WRT-10, WRT-12
func TestWhatAnActionRefuses(t *testing.T) {
	r := linked(t)
	r.apply(meta.AttachChild{Parent: "plain", ParentID: r.id("plain"), Child: "local", ChildID: r.topic("local", weekMS).ID, Epoch: "e", Offsets: []int64{0, 0, 0}})
	r.owners.blocked = []wire.BlockedAt{{Partition: 0, Offset: 0, State: wire.RejectedRecord}}
	before := r.stored()
	for name, try := range map[string]func(c Caller, parent, child string) error{
		"pause": func(c Caller, parent, child string) error {
			_, err := r.Pause(t.Context(), c, parent, child, "")
			return err
		},
		"resume": func(c Caller, parent, child string) error {
			_, err := r.Resume(t.Context(), c, parent, child, false)
			return err
		},
		"skip": func(c Caller, parent, child string) error {
			_, err := r.Skip(t.Context(), c, parent, child, 0, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			r.t = t
			r.refused(try(Caller{Name: "owner"}, "orders", "c"), wire.Denied)
			r.refused(try(root, "absent", "c"), wire.NotFound)
			r.refused(try(root, "orders", "absent"), wire.NotFound)
			r.refused(try(root, "plain", "c"), wire.NotFound)
			r.refused(try(root, "plain", "local"), wire.Conflict)
			r.raft.gate = wire.Refuse(wire.Precondition, "n2 is old")
			r.refused(try(root, "orders", "c"), wire.Precondition)
			r.raft.gate = nil
		})
	}
	r.t = t
	for _, reason := range []string{strings.Repeat("x", wire.MaxPauseReason+1), "two\nlines", "caf\u00e9", "\x7f"} {
		_, err := r.Pause(t.Context(), root, "orders", "c", reason)
		r.refused(err, wire.Invalid)
	}
	for _, at := range [][2]int64{{-1, 0}, {3, 0}, {0, -1}} {
		_, err := r.Skip(t.Context(), root, "orders", "c", int(at[0]), at[1])
		r.refused(err, wire.Invalid)
	}
	require.Equal(t, before, r.stored())
	require.Empty(t, r.leader.bodies[2:], "what this node refuses does not reach the leader")
}

func (r *rig) id(topic string) string {
	m, ok := r.raft.Topic(topic)
	require.True(r.t, ok)
	return m.ID
}

// covers: WRT-14
func TestTheLeaderChecksTheEpoch(t *testing.T) {
	r := linked(t)
	r.owners.blocked = []wire.BlockedAt{{Partition: 0, Offset: 0, State: wire.RejectedRecord}}
	before := r.stored()
	for _, w := range []write{
		{Kind: kindPause}, {Kind: kindResume}, {Kind: kindResume, Accept: true}, {Kind: kindSkip, Skip: &meta.SkipOne{}},
	} {
		w.Parent, w.Child, w.Epoch, w.Admin, w.Actor = "orders", "c", "of an earlier attach", true, "admin"
		body, err := json.Marshal(w)
		require.NoError(t, err)
		_, err = r.ServeRemoteWrite(t.Context(), body)
		require.Equal(t, meta.Retry, r.refusal(err, wire.Conflict).Text)
		w.Admin, w.Epoch = false, r.link().AttachEpoch
		body, err = json.Marshal(w)
		require.NoError(t, err)
		_, err = r.ServeRemoteWrite(t.Context(), body)
		r.refused(err, wire.Denied)
	}
	for _, w := range []write{
		{Kind: kindPause, Reason: "\n"}, {Kind: kindSkip, Skip: &meta.SkipOne{Partition: 3}}, {Kind: kindSkip},
	} {
		w.Parent, w.Child, w.Epoch, w.Admin = "orders", "c", r.link().AttachEpoch, true
		body, err := json.Marshal(w)
		require.NoError(t, err)
		_, err = r.ServeRemoteWrite(t.Context(), body)
		require.Error(t, err)
	}
	require.Equal(t, before, r.stored())
	short, _ := r.lines()
	require.Contains(t, short, "remote_child.accept_target orders/c refused")
}

// covers: WRT-12
func TestResumeChecksTheTarget(t *testing.T) {
	r := linked(t)
	_, err := r.Pause(t.Context(), root, "orders", "c", "")
	require.NoError(t, err)
	before := r.stored()
	resume := func(accept bool) error {
		_, refused := r.Resume(t.Context(), root, "orders", "c", accept)
		return refused
	}
	r.target = answer(404, `{"error":"`+canary+`"}`)
	p := r.refusal(resume(true), wire.Conflict)
	require.Equal(t, "target_missing", p.Fields["class"])
	require.Equal(t, []wire.Check{{Node: "n1", Result: "fail", Class: "target_missing", CredentialVersion: 1, Posture: sound()}}, p.Fields["checks"])
	r.target = answer(503, canary)
	require.Positive(t, r.refusal(resume(false), wire.Unavailable).RetryAfter)
	r.target = topicAnswer(`{"name":"orders"}`)
	require.Equal(t, "target_replaced", r.refusal(resume(true), wire.Conflict).Fields["class"], "there is no ID to accept")
	r.target = topicAnswer(`{"name":"orders","id":"` + r.id("orders") + `"}`)
	require.Equal(t, "target_is_source", r.refusal(resume(true), wire.Conflict).Fields["class"])
	r.target = topicAnswer(`{"name":"orders","id":"00000000000000ee"}`)
	require.Equal(t, "target_replaced", r.refusal(resume(false), wire.Conflict).Fields["class"])
	require.Equal(t, before, r.stored())
	require.True(t, r.link().Remote.Paused)

	require.NoError(t, resume(true))
	require.Equal(t, "00000000000000ee", r.link().Remote.TargetID)
	require.False(t, r.link().Remote.Paused)
	require.NoError(t, resume(true), "the ID that is recorded already")
	short, _ := r.lines()
	require.Equal(t, "remote_child.accept_target orders/c committed", short[len(short)-1])

	require.NoError(t, r.DeleteRemote(t.Context(), root, "dr", true))
	require.Equal(t, "remote_missing", r.refusal(resume(false), wire.Precondition).Fields["class"]) // DEC-21
	_, err = r.Pause(t.Context(), root, "orders", "c", "")
	require.NoError(t, err, "a pause asks nobody")
}

// A remote that changes between the check and the proposal was not the one that was checked.
func TestResumeOfAChangedRemote(t *testing.T) {
	r := linked(t)
	change := r.target
	r.target = func(w http.ResponseWriter, req *http.Request) {
		password := canary + "2"
		_, err := r.PatchRemote(t.Context(), root, "dr", wire.PatchRemote{Password: &password})
		if err != nil {
			t.Error(err)
		}
		change(w, req)
	}
	_, err := r.Resume(t.Context(), root, "orders", "c", false)
	r.refused(err, wire.Conflict)
}

// covers: WRT-10
func TestSkipOnlyWhereItIsStuck(t *testing.T) {
	r := linked(t)
	before := r.stored()
	skip := func(partition int, offset int64) error {
		_, err := r.Skip(t.Context(), root, "orders", "c", partition, offset)
		return err
	}
	at := func(err error) *wire.BlockedAt {
		b, ok := r.refusal(err, wire.Conflict).Fields["blocked_at"].(*wire.BlockedAt)
		require.True(t, ok)
		return b
	}
	require.Nil(t, at(skip(1, 7)), "it is stuck nowhere")
	stuck := wire.BlockedAt{Partition: 1, Offset: 7, State: wire.RejectedRecord}
	r.owners.blocked = []wire.BlockedAt{stuck, {Partition: 1, Offset: 9, State: wire.RecordTooLarge}}
	require.Equal(t, &stuck, at(skip(1, 6)))
	require.Equal(t, &stuck, at(skip(1, 8)))
	r.owners.blocked[0].State = wire.TargetUnavailable
	require.NotNil(t, at(skip(1, 7)), "only a refused record")
	r.owners.blocked[0].State = wire.RejectedRecord
	r.owners.silent = http.ErrServerClosed
	require.Equal(t, retrySoon, r.refusal(skip(1, 7), wire.Unavailable).RetryAfter)
	r.owners.silent = nil
	require.Equal(t, before, r.stored())
	require.Empty(t, r.link().Remote.Skip)

	require.NoError(t, skip(1, 9), "any lane's record")
	require.NoError(t, skip(1, 7))
	require.Equal(t, map[int][]int64{1: {7, 9}}, r.link().Remote.Skip)
	stored := r.stored()
	require.Equal(t, int64(9), at(skip(1, 7)).Offset, "never twice, and what is skipped is not shown")
	require.Equal(t, stored, r.stored())
	short, _ := r.lines()
	require.Equal(t, "remote_child.skip orders/c refused", short[len(short)-1])
}

// Two skips of one record at once store one.
//
// covers: WRT-10
func TestASkipMeetsAnother(t *testing.T) {
	r := linked(t)
	r.owners.blocked = []wire.BlockedAt{{Partition: 0, Offset: 4, State: wire.RecordTooLarge}}
	r.owners.asked = func() { // the other one comes while the owner is asked
		r.owners.asked = nil
		_, err := r.Skip(t.Context(), root, "orders", "c", 0, 4)
		require.NoError(t, err)
	}
	_, err := r.Skip(t.Context(), root, "orders", "c", 0, 4)
	r.refused(err, wire.Conflict)
	short, _ := r.lines()
	require.Equal(t, []string{"remote_child.skip orders/c committed", "remote_child.skip orders/c refused"}, short[2:])
}

// covers: WRT-10
func TestTheNewestSkipsStay(t *testing.T) {
	r := linked(t)
	link := r.link()
	for i := range int64(meta.MaxSkips) {
		r.apply(meta.UpdateRemote{Parent: "orders", Child: "c", Epoch: link.AttachEpoch, Skip: &meta.SkipOne{Offset: i}})
	}
	r.owners.blocked = []wire.BlockedAt{{Offset: 5000, State: wire.RejectedRecord}}
	got, err := r.Skip(t.Context(), root, "orders", "c", 0, 5000)
	require.NoError(t, err)
	skips := got.Remote.Skip["0"]
	require.Len(t, skips, meta.MaxSkips)
	require.EqualValues(t, 1, skips[0])
	require.EqualValues(t, 5000, skips[meta.MaxSkips-1])
}

// covers: LST-06
func TestAnUnconfirmedChangeSaysSo(t *testing.T) {
	r := linked(t)
	r.raft.behind = http.ErrServerClosed
	_, err := r.Pause(t.Context(), root, "orders", "c", "")
	p := r.refusal(err, wire.Unavailable)
	require.Equal(t, retrySoon, p.RetryAfter)
	require.Equal(t, false, p.Fields["settled"])
	require.True(t, r.link().Remote.Paused)
}

// covers: WRT-09
func TestWritesHaveARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{State: meta.NewState()})
		for i := range 10 {
			require.NoError(t, s.mayWrite(&write{Kind: []string{kindPutRemote, kindDeleteRemote}[i%2]}))
			time.Sleep(time.Second)
		}
		err := s.mayWrite(&write{Kind: kindPutRemote})
		require.Equal(t, wire.Throttled, wire.KindOf(err))
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, 50*time.Second, p.RetryAfter)
		kinds := []string{kindPause, kindResume, kindSkip, kindDetach, kindAttach}
		for i := range 60 {
			require.NoError(t, s.mayWrite(&write{Kind: kinds[i%len(kinds)], Attach: &wire.AttachChild{}}), "they count apart")
		}
		require.Error(t, s.mayWrite(&write{Kind: kindPause}))
		require.NoError(t, s.mayWrite(&write{Kind: kindAttach, Attach: &wire.AttachChild{DryRun: true}}))
		require.NoError(t, s.mayWrite(&write{Kind: kindDeleteTopic, Name: "without links"}))
		time.Sleep(50 * time.Second)
		require.NoError(t, s.mayWrite(&write{Kind: kindPutRemote}))
		require.Error(t, s.mayWrite(&write{Kind: kindPutRemote}), "the second is not a minute old")
		time.Sleep(10 * time.Second)
		require.NoError(t, s.mayWrite(&write{Kind: kindPause}))
	})
}

// The rate stands in front of the leader, on the way of every write.
//
// covers: WRT-09
func TestARefusedWriteGoesNowhere(t *testing.T) {
	r := linked(t, func(o *Options) { o.Rates = Rates{RemoteWrites: 1, ChildWrites: 2, CheckEvery: 1} })
	_, err := r.Pause(t.Context(), root, "orders", "c", "")
	require.NoError(t, err)
	before := len(r.leader.bodies)
	_, err = r.Pause(t.Context(), root, "orders", "c", "")
	r.refused(err, wire.Throttled)
	r.refused(r.DeleteTopic(t.Context(), root, "orders", true), wire.Throttled)
	r.refused(r.DeleteRemote(t.Context(), root, "dr", true), wire.Throttled)
	require.Len(t, r.leader.bodies, before)
}

// covers: TGT-13
func TestChecksOfARemoteAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := spacing{every: 5 * time.Second, last: map[string]time.Time{}}
		require.NoError(t, s.take("a"))
		require.NoError(t, s.take("b"))
		time.Sleep(2 * time.Second)
		var p *wire.Problem
		require.ErrorAs(t, s.take("a"), &p)
		require.Equal(t, wire.Throttled, p.Kind)
		require.Equal(t, 3*time.Second, p.RetryAfter)
		time.Sleep(3 * time.Second)
		require.NoError(t, s.take("a"))
		require.Len(t, s.last, 1)
	})
}

// covers: TGT-13
func TestEveryCheckCounts(t *testing.T) {
	r := linked(t, func(o *Options) { o.Rates.CheckEvery = time.Hour })
	other := attach("other")
	other.RemoteTopic, other.DryRun = "other", true
	for name, try := range map[string]func() error{
		"resume":  func() error { _, err := r.Resume(t.Context(), root, "orders", "c", false); return err },
		"test":    func() error { _, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"}); return err },
		"dry run": func() error { _, err := r.Attach(t.Context(), root, "orders", other); return err },
	} {
		require.Positive(t, r.refusal(try(), wire.Throttled).RetryAfter, name)
	}
}

// covers: TGT-05
func TestATestOfARemote(t *testing.T) {
	r := linked(t)
	before := r.stored()
	got, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders", Source: "orders"})
	require.NoError(t, err)
	require.Equal(t, wire.RemoteTest{Remote: "dr", Result: "pass", Checks: []wire.Check{{Node: "n1", Result: "pass", CredentialVersion: 1, Posture: sound()}}}, got)
	r.target = answer(401, `{"error":"`+canary+`"}`)
	got, err = r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"})
	require.NoError(t, err)
	require.Equal(t, "auth_failed", got.Class)
	require.Equal(t, []wire.Check{{Node: "n1", Result: "fail", Class: "auth_failed", CredentialVersion: 1, Posture: sound()}}, got.Checks)
	r.target = topicAnswer(`{"name":"orders","id":"` + r.id("orders") + `"}`)
	got, err = r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders", Source: "orders"})
	require.NoError(t, err)
	require.Equal(t, "target_is_source", got.Class)

	for _, c := range []struct {
		who    Caller
		remote string
		req    wire.TestRemote
		kind   wire.Kind
	}{
		{Caller{}, "dr", wire.TestRemote{Topic: "orders"}, wire.Denied},
		{root, "none", wire.TestRemote{Topic: "orders"}, wire.NotFound},
		{root, "dr", wire.TestRemote{}, wire.Invalid},
		{root, "dr", wire.TestRemote{Topic: "orders", Source: "none"}, wire.Invalid},
	} {
		_, err = r.Test(t.Context(), c.who, c.remote, c.req)
		r.refused(err, c.kind)
	}
	require.Equal(t, before, r.stored())
}

// covers: CRD-04, NET-08
func TestLimitsAloneKeepTheCredential(t *testing.T) {
	r := linked(t)
	got, err := r.PatchRemote(t.Context(), root, "dr", wire.PatchRemote{Limits: &wire.PatchLimits{MaxInFlight: ptr(3)}})
	require.NoError(t, err)
	require.EqualValues(t, 1, got.CredentialVersion)
	require.EqualValues(t, 2, got.Revision)
	entry := r.o.Vault.Entry("dr")
	require.Equal(t, 3, entry.Limits.MaxInFlight)
	require.EqualValues(t, 1, entry.CredentialVersion)
	password := canary + "2"
	got, err = r.PatchRemote(t.Context(), root, "dr", wire.PatchRemote{Password: &password})
	require.NoError(t, err)
	require.EqualValues(t, 2, got.CredentialVersion)
	require.Equal(t, 3, got.Limits.MaxInFlight)
	require.EqualValues(t, 2, r.o.Vault.Entry("dr").CredentialVersion)
}
