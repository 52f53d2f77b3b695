package link

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"narad.example/narad/meta"
	"narad.example/narad/schema"
	"narad.example/narad/wire"
)

const weekMS = 7 * 24 * meta.HourMS

func attach(child string) wire.AttachChild {
	return wire.AttachChild{Child: child, Remote: "dr"}
}

// covers: WRT-11, CRD-01
func TestAttachAndDetach(t *testing.T) {
	r := newRig(t)
	parent := r.topic("orders", weekMS)
	r.remote("dr")
	var auth string
	r.target = func(w http.ResponseWriter, req *http.Request) {
		auth = req.Header.Get("Authorization")
		assert.Contains(t, []string{"/v1/topics/copy", "/v1/topics/copy/children"}, req.URL.EscapedPath())
		topicAnswer(`{"name":"copy","id":"00000000000000ff"}`)(w, req)
	}
	req := attach("orders-dr")
	req.RemoteTopic, req.From, req.Lanes, req.DelayMS = "copy", wire.FromEarliest, 4, 5000
	dry := req
	dry.DryRun = true
	got, err := r.Attach(t.Context(), root, "orders", dry)
	require.NoError(t, err)
	require.Equal(t, []int64{10, 11, 12}, got.AttachOffsets)
	_, ok := r.raft.Topic("orders-dr")
	require.False(t, ok, "a dry run writes nothing")
	short, _ := r.lines()
	require.Equal(t, []string{"remote.create dr committed"}, short)

	got, err = r.Attach(t.Context(), root, "orders", req)
	require.NoError(t, err)
	require.Equal(t, "orders-dr", got.Name)
	require.Equal(t, []string{}, got.Warnings)
	require.NotEmpty(t, auth)
	stub, ok := r.raft.Topic("orders-dr")
	require.True(t, ok)
	require.Equal(t, meta.RemoteLink{Remote: "dr", Topic: "copy", TargetID: "00000000000000ff", From: "earliest", Lanes: 4, CreatedBy: "admin"}, *stub.Remote)
	require.Equal(t, []int64{10, 11, 12}, stub.AttachOffsets)
	require.Equal(t, parent.Name, stub.Parent)
	require.EqualValues(t, 5000, stub.FanoutDelayMS)
	require.Zero(t, stub.Partitions)

	r.refused(r.Detach(t.Context(), Caller{Name: "other"}, "orders", "orders-dr", false), wire.Denied)
	r.refused(r.Detach(t.Context(), root, "orders", "none", false), wire.NotFound)
	r.refused(r.Detach(t.Context(), root, "none", "orders-dr", false), wire.NotFound)
	r.owners.order = nil
	require.NoError(t, r.Detach(t.Context(), Caller{Name: "owner", RequestID: "00000000000000bb"}, "orders", "orders-dr", false))
	require.Equal(t, []string{"backlog", "lag"}, r.owners.order)
	_, ok = r.raft.Topic("orders-dr")
	require.False(t, ok)
	short, whole := r.lines()
	require.Equal(t, []string{"remote.create dr committed", "remote_child.create orders/orders-dr committed", "remote_child.delete orders/orders-dr committed"}, short)
	require.Equal(t, "00000000000000bb", whole[2]["request_id"])
	require.Equal(t, "owner", whole[2]["actor"])
}

// covers: TGT-11
func TestWhatAnAttachRefuses(t *testing.T) {
	r := newRig(t)
	r.topic("orders", weekMS)
	r.topic("short", 23*meta.HourMS)
	r.topic("warm", 48*meta.HourMS)
	r.topic("forever", 0)
	r.topic("taken", weekMS)
	r.remote("dr")
	try := func(parent string, change func(*wire.AttachChild)) error {
		req := attach("c")
		change(&req)
		_, err := r.Attach(t.Context(), root, parent, req)
		return err
	}
	for name, change := range map[string]func(*wire.AttachChild){
		"no remote": func(q *wire.AttachChild) { q.Remote = "" }, "unknown remote": func(q *wire.AttachChild) { q.Remote = "none" }, "bad remote": func(q *wire.AttachChild) { q.Remote = "A" },
		"child": func(q *wire.AttachChild) { q.Child = "a b" }, "topic": func(q *wire.AttachChild) { q.RemoteTopic = ".." }, "from": func(q *wire.AttachChild) { q.From = "now" },
		"lanes": func(q *wire.AttachChild) { q.Lanes = 9 }, "few lanes": func(q *wire.AttachChild) { q.Lanes = -1 }, "delay": func(q *wire.AttachChild) { q.DelayMS = yearMS + 1 },
	} {
		require.Equal(t, wire.Invalid, wire.KindOf(try("orders", change)), name)
	}
	none := func(*wire.AttachChild) {}
	r.refused(try("absent", none), wire.NotFound)
	r.refused(try("short", none), wire.Conflict)
	r.refused(try("warm", func(q *wire.AttachChild) { q.DelayMS = 48 * meta.HourMS }), wire.Conflict)
	r.refused(try("orders", func(q *wire.AttachChild) { q.Child = "taken" }), wire.Conflict)
	_, err := r.Attach(t.Context(), Caller{Name: "owner"}, "orders", attach("c"))
	r.refused(err, wire.Denied)

	got, err := r.Attach(t.Context(), root, "warm", attach("warm-dr"))
	require.NoError(t, err)
	require.Len(t, got.Warnings, 1)
	got, err = r.Attach(t.Context(), root, "forever", attach("forever-dr"))
	require.NoError(t, err)
	require.Empty(t, got.Warnings)

	again := attach("other")
	again.RemoteTopic = "warm"
	_, err = r.Attach(t.Context(), root, "orders", again)
	require.Equal(t, []string{"warm/warm-dr"}, r.refusal(err, wire.Conflict).Fields["links"])
	r.remote("dr2") // the same host and port
	again.Remote = "dr2"
	_, err = r.Attach(t.Context(), root, "orders", again)
	r.refused(err, wire.Conflict)
	r.refused(try("warm-dr", none), wire.Conflict)

	for i := range meta.MaxRemoteChildren {
		req := attach("c" + strconv.Itoa(i))
		req.RemoteTopic = req.Child
		_, err = r.Attach(t.Context(), root, "orders", req)
		require.NoError(t, err)
	}
	r.refused(try("orders", none), wire.Conflict)
}

// covers: CUR-05
func TestAnOwnerThatCannotBeAskedLeavesNothing(t *testing.T) {
	r := newRig(t)
	r.topic("orders", weekMS)
	r.remote("dr")
	r.owners.offsets = http.ErrServerClosed
	_, err := r.Attach(t.Context(), root, "orders", attach("c"))
	r.refused(err, wire.Unavailable)
	require.Empty(t, r.raft.Children("orders"))
	short, _ := r.lines()
	require.Equal(t, "remote_child.create orders/c refused", short[1])
}

// listed is a target with the topic 1 and that children listing.
func listed(listing string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/children") {
			answer(200, listing)(w, req)
			return
		}
		answer(200, `{"name":"orders","id":"1"}`)(w, req)
	}
}

// A refusal of the remote as a whole reaches the gate, with the credential version that it was met under (DEC-48).
//
// covers: GAT-01, RUN-10
func TestTheGateHearsOfAFailedCheck(t *testing.T) {
	var heard []string
	r := newRig(t, func(o *Options) {
		o.Refused = func(remote string, version uint64, err error) {
			heard = append(heard, fmt.Sprint(remote, " ", version, " ", err))
		}
	})
	r.topic("orders", weekMS)
	r.remote("dr")
	_, err := r.Attach(t.Context(), root, "orders", attach("c"))
	require.NoError(t, err)
	require.Empty(t, heard, "a good check is none of the gate's")
	r.target = answer(401, `{"error":"no"}`)
	got, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"})
	require.NoError(t, err)
	require.Equal(t, "auth_failed", got.Class)
	r.target = func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/children") {
			answer(429, `{}`)(w, req)
			return
		}
		topicAnswer(`{"name":"orders","id":"1"}`)(w, req)
	}
	got, err = r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"})
	require.NoError(t, err)
	require.Equal(t, "throttled", got.Class)
	require.Equal(t, []string{"dr 1 target: auth_failed (status 401)", "dr 1 target: throttled (status 429)"}, heard)
}

// covers: TGT-05, TGT-06, TGT-10
func TestWhatTheTargetSaysOfItself(t *testing.T) {
	r := newRig(t)
	parent := r.topic("orders", weekMS)
	r.remote("dr")
	for _, tc := range []struct {
		target http.HandlerFunc
		class  string
		kind   wire.Kind
	}{
		{answer(404, `{"error":"`+canary+`"}`), "target_missing", wire.Conflict},
		{topicAnswer(`{"name":"orders","id":"` + parent.ID + `"}`), "target_is_source", wire.Conflict},
		{topicAnswer(`{"name":"orders","id":"1","remote":{"name":"x"}}`), "target_is_stub", wire.Conflict},
		{topicAnswer(`{"name":"orders","id":"1","fanout_delay_ms":5}`), "target_is_delay_child", wire.Conflict},
		{topicAnswer(`{"name":"orders","id":"1","schema_version":1,"schema":{"type":"object"}}`), "schema_mismatch", wire.Conflict},
		{answer(401, `{"error":"`+canary+`"}`), "auth_failed", wire.Conflict},
		{answer(403, `{"error":"`+canary+`"}`), "forbidden", wire.Conflict},
		{answer(429, `{}`), "throttled", wire.Throttled},
		{answer(503, canary), "unavailable", wire.Unavailable},
		{answer(302, canary), "redirect_refused", wire.BadGateway},
		{answer(200, canary), "edge", wire.BadGateway},
		{answer(404, "<html>"+canary), "edge", wire.BadGateway},
		{listed(`{"parent":"orders","parent_id":"1","children":[{"name":"x"},{"name":"y","remote":"eu"}]}`), "target_has_remote_children", wire.Conflict},
		{listed(`{"parent":"orders","parent_id":"2","children":[]}`), "target_replaced", wire.Conflict},
		{listed(`{"parent":"orders"}`), "edge", wire.BadGateway},
	} {
		r.target = tc.target
		_, err := r.Attach(t.Context(), root, "orders", attach("c"))
		p := r.refusal(err, tc.kind)
		require.Equal(t, tc.class, p.Fields["class"])
		body, err := json.Marshal(p.Fields)
		require.NoError(t, err)
		r.noSecrets(string(body))
		require.Equal(t, []wire.Check{{Node: "n1", Result: "fail", Class: tc.class, CredentialVersion: 1, Posture: sound()}}, p.Fields["checks"])
	}
	rec, _ := r.raft.Remote("dr")
	rec.Ciphertext[len(rec.Ciphertext)-1] ^= 1
	r.apply(meta.Reseal{Name: "dr", ID: rec.ID, CredentialVersion: 1, Ciphertext: rec.Ciphertext, KeyVersion: "x"})
	r.apply(meta.DeleteRemote{Name: "dr", ID: rec.ID})
	rec.ID, rec.CredentialVersion, rec.Revision = meta.NewID(), 1, 1
	r.apply(meta.PutRemote{Remote: rec})
	_, err := r.Attach(t.Context(), root, "orders", attach("c"))
	require.Equal(t, "credential_unreadable", r.refusal(err, wire.Precondition).Fields["class"])
	require.Empty(t, r.raft.Children("orders"))
}

// A link is attached, and goes on after a pause, while the target has the parent's current schema, however it writes it down.
//
// covers: TGT-05, TGT-10, BRK-11, WRT-12
func TestTheTargetHasTheParentsSchema(t *testing.T) {
	r := newRig(t)
	parent := r.topic("orders", weekMS)
	r.remote("dr")
	put := func(version int, body string) {
		doc, err := schema.Parse([]byte(body))
		require.NoError(t, err)
		r.apply(meta.PutSchema{Alter: &meta.AlterTopic{Name: "orders", ID: parent.ID}, Base: version, Schema: meta.Schema{Body: doc.Raw, Sum: doc.Sum}})
	}
	put(0, `true`)
	put(1, `{"type":"object","minProperties":1}`)
	const same = `{"name":"orders","id":"1","schema_version":7,"schema":{"minProperties":1.0, "type":"object"}}`
	differing := []string{
		`{"name":"orders","id":"1"}`, `{"name":"orders","id":"1","schema_version":2,"schema":true}`, `{"name":"orders","id":"1","schema_version":2}`,
		`{"name":"orders","id":"1","schema_version":2,"schema":{"type":"object","minProperties":2}}`,
		`{"name":"orders","id":"1","schema_version":0,"schema":{"type":"object","minProperties":1}}`,
	}
	for _, body := range differing {
		r.target = topicAnswer(body)
		_, err := r.Attach(t.Context(), root, "orders", attach("c"))
		require.Equal(t, "schema_mismatch", r.refusal(err, wire.Conflict).Fields["class"], body)
		tested, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders", Source: "orders"})
		require.NoError(t, err)
		require.Equal(t, "schema_mismatch", tested.Class, body)
	}
	tested, err := r.Test(t.Context(), root, "dr", wire.TestRemote{Topic: "orders"})
	require.NoError(t, err)
	require.Empty(t, tested.Class, "no source, nothing to match")
	r.target = topicAnswer(same)
	_, err = r.Attach(t.Context(), root, "orders", attach("c"))
	require.NoError(t, err)
	stub, _ := r.raft.Topic("c")
	require.Empty(t, stub.Schemas)

	_, err = r.Pause(t.Context(), root, "orders", "c", "")
	require.NoError(t, err)
	put(2, `{"type":"array"}`)
	_, err = r.Resume(t.Context(), root, "orders", "c", false)
	require.Equal(t, "schema_mismatch", r.refusal(err, wire.Conflict).Fields["class"])
	r.target = topicAnswer(`{"name":"orders","id":"1","schema_version":1,"schema":{"type":"array"}}`)
	_, err = r.Resume(t.Context(), root, "orders", "c", false)
	require.NoError(t, err)
}

// covers: UNS-01, UNS-02, WRT-11
func TestUnshippedRecordsHoldADelete(t *testing.T) {
	for name, tc := range map[string]struct {
		backlog BacklogReport
		lag     LagReport
		want    wire.Unshipped
	}{
		"lag":        {BacklogReport{}, LagReport{Messages: 7, Complete: true}, wire.Unshipped{LagMessages: 7, LagComplete: true}},
		"no owner":   {BacklogReport{}, LagReport{NotAnswering: []string{"n2"}}, wire.Unshipped{NotAnswering: []string{"n2"}}},
		"backlog":    {BacklogReport{Nodes: map[string]int64{"n1": 0, "n2": 5}}, LagReport{Complete: true}, wire.Unshipped{LagComplete: true, DispatchBacklog: map[string]int64{"n2": 5}}},
		"no member":  {BacklogReport{NotAnswering: []string{"n3"}}, LagReport{Complete: true, NotAnswering: []string{"n3"}}, wire.Unshipped{LagComplete: true, NotAnswering: []string{"n3"}}},
		"over limit": {BacklogReport{OverLimit: []string{"n3"}}, LagReport{Complete: true}, wire.Unshipped{LagComplete: true, BacklogOverScanLimit: []string{"n3"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.topic("orders", weekMS)
			r.remote("dr")
			_, err := r.Attach(t.Context(), root, "orders", attach("c"))
			require.NoError(t, err)
			r.owners.backlog, r.owners.lag = tc.backlog, tc.lag
			p := r.refusal(r.DeleteTopic(t.Context(), root, "c", false), wire.Conflict)
			p.Fields["error"] = ""
			body, err := json.Marshal(p.Fields)
			require.NoError(t, err)
			if tc.want.DispatchBacklog == nil {
				tc.want.DispatchBacklog = map[string]int64{}
			}
			want, err := json.Marshal(tc.want)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(body))

			p = r.refusal(r.Detach(t.Context(), root, "orders", "c", false), wire.Throttled)
			require.Positive(t, p.RetryAfter)
			require.NoError(t, r.DeleteTopic(t.Context(), root, "orders", true))
			_, ok := r.raft.Topic("c")
			require.False(t, ok)
			short, whole := r.lines()
			require.Equal(t, []string{"remote_child.delete orders/c refused", "remote_child.delete orders/c refused", "topic.delete orders committed", "remote_child.delete orders/c committed"}, short[2:])
			for _, line := range whole[4:] {
				require.Equal(t, true, line["force"])
				require.EqualValues(t, tc.want.LagMessages, line["abandoned_lag_messages"])
				require.EqualValues(t, tc.want.DispatchBacklog["n2"], line["abandoned_dispatch_backlog"])
			}
		})
	}
}

// covers: WRT-13
func TestDeleteOfARemoteInUse(t *testing.T) {
	r := newRig(t)
	r.topic("orders", weekMS)
	r.remote("dr")
	_, err := r.Attach(t.Context(), root, "orders", attach("c"))
	require.NoError(t, err)
	r.refused(r.DeleteRemote(t.Context(), Caller{Name: "u"}, "dr", true), wire.Denied)
	p := r.refusal(r.DeleteRemote(t.Context(), root, "dr", false), wire.Conflict)
	require.Equal(t, []string{"orders/c"}, p.Fields["links"])
	require.NoError(t, r.DeleteRemote(t.Context(), root, "dr", true))
	require.Equal(t, wire.RemoteMissing, r.o.Vault.Entry("dr").State)
	r.refused(r.DeleteRemote(t.Context(), root, "dr", true), wire.NotFound)

	// A new create of the name takes its links along, so it must not meet another remote's link (TGT-11).
	r.remote("dr2")
	other := attach("c2")
	other.Remote, other.RemoteTopic = "dr2", "orders"
	_, err = r.Attach(t.Context(), root, "orders", other)
	require.NoError(t, err)
	_, err = r.CreateRemote(t.Context(), root, r.create("dr"))
	require.Equal(t, []string{"orders/c2"}, r.refusal(err, wire.Conflict).Fields["links"])
	short, _ := r.lines()
	require.Equal(t, []string{"remote.delete dr refused", "remote.delete dr committed"}, short[2:4])
}

// covers: UNS-04, UNS-05
func TestWhoSharesACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newCheckGate()
		begun := 0
		read := func() unshippedReport {
			begun++
			n := begun
			time.Sleep(5 * time.Second)
			return unshippedReport{backlog: BacklogReport{Nodes: map[string]int64{"n": int64(n)}}}
		}
		start := time.Now()
		type result struct {
			n  int64
			at time.Duration
		}
		ask := func() <-chan result {
			out := make(chan result, 1)
			go func() {
				rep, err := g.check(t.Context(), "p", false, read)
				if err != nil {
					out <- result{-1, time.Since(start)}
					return
				}
				out <- result{rep.backlog.Nodes["n"], time.Since(start)}
			}()
			synctest.Wait()
			return out
		}
		first := ask()
		time.Sleep(time.Second)
		second, third := ask(), ask() // while the first one runs: the next check, shared
		require.Equal(t, result{1, 5 * time.Second}, <-first)
		refused := ask() // none runs, and the last one began 5 s ago
		require.Equal(t, result{-1, 5 * time.Second}, <-refused)
		require.Equal(t, result{2, 15 * time.Second}, <-second)
		require.Equal(t, result{2, 15 * time.Second}, <-third)
		rep, err := g.check(t.Context(), "p", true, read)
		require.NoError(t, err, "force decides nothing")
		require.EqualValues(t, 2, rep.backlog.Nodes["n"])
		time.Sleep(checkEvery)
		require.Equal(t, result{3, 30 * time.Second}, <-ask())
		require.Equal(t, 3, begun)
		time.Sleep(checkEvery + time.Second)
		g.enter("q").waiting--
		require.Len(t, g.parents, 1)
	})
}

// patient is members and owners that answer nothing: each read lasts as long as it is waited for.
type patient struct{ waited []time.Duration }

func (p *patient) wait(ctx context.Context) {
	began := time.Now()
	<-ctx.Done()
	p.waited = append(p.waited, time.Since(began))
}

func (p *patient) Backlog(ctx context.Context, _ meta.Topic) BacklogReport {
	p.wait(ctx)
	return BacklogReport{NotAnswering: []string{"n2"}}
}

func (p *patient) Lag(ctx context.Context, _ meta.Topic) LagReport {
	p.wait(ctx)
	return LagReport{NotAnswering: []string{"n2"}}
}

// The leader waits for backlogs for 15 s and then for lags for 5 s; whoever said nothing by then holds the delete back.
//
// covers: UNS-03, UNS-04
func TestTheUnshippedCheckEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, p := meta.NewState(), &patient{}
		require.NoError(t, state.Apply(1, meta.CreateTopic{Topic: meta.Topic{Name: "orders", ID: meta.NewID(), Partitions: 1, Owner: "u", Nodes: []string{"n1"}}}))
		s := &seat{site: &site{o: Options{State: state, Backlog: p, Lag: p}}}
		parent, _ := state.Topic("orders")
		link := meta.Topic{Name: "c", AttachEpoch: "e"}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // who set it off has left, others may wait for it
		report := s.readUnshipped(ctx, parent)
		require.Equal(t, []time.Duration{15 * time.Second}, p.waited, "a parent without links has no lag to read")
		u, clean := report.of([]meta.Topic{link})
		require.False(t, clean)
		require.Equal(t, []string{"n2"}, u.NotAnswering)
		require.False(t, u.LagComplete)
	})
}
