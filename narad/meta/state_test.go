package meta

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// book applies entries with rising indexes.
type book struct {
	*State
	t *testing.T
}

func newBook(t *testing.T) *book { return &book{NewState(), t} }

func (b *book) do(e Entry) {
	b.t.Helper()
	require.NoError(b.t, b.Apply(b.Applied()+1, e))
}

func (b *book) refuse(kind wire.Kind, text string, e Entry) {
	b.t.Helper()
	require.NotNil(b.t, b.refusal(kind, text, e))
}

// refusal is the problem with which an entry is refused, for a test that reads more of it.
func (b *book) refusal(kind wire.Kind, text string, e Entry) *wire.Problem {
	b.t.Helper()
	before := dump(b.t, b.State)
	err := b.Apply(b.Applied()+1, e)
	var p *wire.Problem
	require.ErrorAs(b.t, err, &p)
	require.Equal(b.t, kind, p.Kind, p.Text)
	require.Contains(b.t, p.Text, text)
	require.Equal(b.t, before, dump(b.t, b.State), "a refusal changed the state")
	return p
}

func plain(name string) Topic {
	return Topic{
		Name: name, ID: "id-" + name, Partitions: 3, RetentionMS: 7 * 24 * HourMS, Nodes: []string{"a", "a", "a"},
	}
}

func stub(name, parent, remote string) AttachRemote {
	return AttachRemote{
		Topic: Topic{
			Name: name, ID: "id-" + name, Parent: parent, AttachEpoch: "epoch-" + name, AttachOffsets: []int64{1, 2, 3},
			Remote: &RemoteLink{Remote: remote, Topic: "there", From: wire.FromAttach, Lanes: 1},
		},
		ParentID: "id-" + parent, ParentPartitions: 3,
	}
}

func remote(name string) PutRemote {
	return PutRemote{
		Remote: Remote{Name: name, ID: "rid-" + name, URL: "https://b", Ciphertext: []byte("one"), KeyVersion: "k1"},
		Salt:   make([]byte, SaltBytes),
	}
}

// covers: BRK-09, BRK-06
func TestNamesAreUniqueWithoutCase(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("Orders")})
	b.refuse(wire.Conflict, "already exists", CreateTopic{Topic: plain("Orders")})
	other := plain("orders")
	b.refuse(wire.Conflict, "differs only in letter case", CreateTopic{Topic: other})
	b.do(remote("r"))
	b.refuse(wire.Conflict, "differs only in letter case", stub("ORDERS", "Orders", "r"))

	got, ok := b.TopicByID("id-Orders")
	require.True(t, ok)
	require.Equal(t, "Orders", got.Name)
	_, ok = b.Topic("orders")
	require.False(t, ok, "a read goes by the exact name")

	again := plain("Orders")
	again.ID = "second"
	b.refuse(wire.Conflict, Retry, DeleteTopic{Name: "Orders", ID: "second"})
	b.do(DeleteTopic{Name: "Orders", ID: "id-Orders"})
	b.do(CreateTopic{Topic: again})
	_, ok = b.TopicByID("id-Orders")
	require.False(t, ok, "the old incarnation is gone")
}

// covers: CUR-04, BRK-10
func TestLocalChildren(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	b.do(CreateTopic{Topic: plain("c")})
	attach := AttachChild{
		Parent: "p", ParentID: "id-p", Child: "c", ChildID: "id-c", Epoch: "e1", DelayMS: HourMS, Offsets: []int64{5, 6, 7},
	}
	short := attach
	short.Offsets = []int64{5}
	b.refuse(wire.Conflict, Retry, short)
	b.do(attach)
	got, _ := b.Topic("c")
	require.Equal(t, "p", got.Parent)
	require.Equal(t, "e1", got.AttachEpoch)
	require.Equal(t, int64(7), got.StartOffset(2))
	require.Equal(t, int64(0), got.StartOffset(3), "a partition added later starts at 0")
	b.refuse(wire.Conflict, "has a parent already", attach)

	b.do(CreateTopic{Topic: plain("x")})
	b.refuse(wire.Conflict, "itself a child", AttachChild{
		Parent: "c", ParentID: "id-c", Child: "x", ChildID: "id-x", Epoch: "e", Offsets: []int64{0, 0, 0},
	})
	b.refuse(wire.Conflict, "children of its own", AttachChild{
		Parent: "x", ParentID: "id-x", Child: "p", ChildID: "id-p", Epoch: "e", Offsets: []int64{0, 0, 0},
	})
	low := HourMS
	b.refuse(wire.Conflict, "delay child", AlterTopic{Name: "p", ID: "id-p", RetentionMS: &low})
	b.refuse(wire.Conflict, Retry, DetachChild{Parent: "p", Child: "c", Epoch: "e0"})
	b.do(DetachChild{Parent: "p", Child: "c", Epoch: "e1"})
	require.Empty(t, b.Children("p"))
	got, _ = b.Topic("c")
	require.Empty(t, got.Parent+got.AttachEpoch)
	require.Zero(t, got.FanoutDelayMS)
	b.do(AlterTopic{Name: "p", ID: "id-p", RetentionMS: &low})
}

func TestAtMostThatManyChildren(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	for i := range MaxChildren + 1 {
		c := plain(fmt.Sprintf("c%03d", i))
		c.Parent, c.AttachEpoch, c.AttachOffsets = "p", "e", []int64{0, 0, 0}
		e := CreateTopic{Topic: c, ParentID: "id-p"}
		if i == MaxChildren {
			b.refuse(wire.Conflict, "at most 108", e)
			continue
		}
		b.do(e)
	}
	require.Len(t, b.Children("p"), MaxChildren)
	b.do(DeleteTopic{Name: "p", ID: "id-p"})
	c, ok := b.Topic("c000")
	require.True(t, ok, "children outlive their parent")
	require.Empty(t, c.Parent)
}

// DEC-30 and DEC-31: the first salt stays, and a change names the revision that it was made from.
func TestRemotesByRevisionAndSalt(t *testing.T) {
	b := newBook(t)
	version := b.RemotesVersion()
	b.do(remote("a"))
	require.Greater(t, b.RemotesVersion(), version)
	require.Len(t, b.Salt(), SaltBytes)

	lost := remote("b")
	lost.Salt = append([]byte{1}, lost.Salt[1:]...)
	require.NotZero(t, b.refusal(wire.Unavailable, "try again", lost).RetryAfter)

	a, _ := b.Remote("a")
	require.Equal(t, uint64(1), a.Revision)
	require.Equal(t, uint64(1), a.CredentialVersion)

	limits := PutRemote{Remote: a, FromRevision: 1}
	limits.Remote.Limits.MaxInFlight = 9
	b.do(Reseal{Name: "a", ID: a.ID, CredentialVersion: 1, Ciphertext: []byte("two"), KeyVersion: "k2", Fingerprint: "f"})
	b.do(limits)
	got, _ := b.Remote("a")
	require.Equal(t, "two", string(got.Ciphertext), "a change of the limits undid a re-encrypt")
	require.Equal(t, uint64(2), got.Revision)
	require.Equal(t, 9, got.Limits.MaxInFlight)
	b.refuse(wire.Conflict, "changed since it was read", limits)

	sealed := PutRemote{Remote: got, FromRevision: 2}
	sealed.Remote.CredentialVersion, sealed.Remote.Ciphertext = 2, []byte("three")
	b.do(sealed)
	b.refuse(wire.Conflict, "changed since it was read", Reseal{Name: "a", ID: a.ID, CredentialVersion: 1})
	got, _ = b.Remote("a")
	require.Equal(t, "three", string(got.Ciphertext))
}

// covers: WRT-13, WRT-07
func TestDeleteOfWhatLinksUse(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	b.do(remote("r"))
	b.do(stub("c", "p", "r"))
	p := b.refusal(wire.Conflict, "in use", DeleteRemote{Name: "r", ID: "rid-r"})
	require.Equal(t, []string{"p/c"}, p.Fields["links"])
	b.refuse(wire.Conflict, "remote children", DeleteTopic{Name: "p", ID: "id-p"})
	b.refuse(wire.Conflict, Retry, DeleteTopic{Name: "c", ID: "id-c"})
	b.do(DeleteRemote{Name: "r", ID: "rid-r", Origin: Origin{Force: true}})
	b.do(DeleteTopic{Name: "p", ID: "id-p", Links: []string{"c"}})
	require.Empty(t, b.Topics())
}

// covers: WRT-14, WRT-12, WRT-10, CUR-01
func TestLinksByEpoch(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	b.do(remote("r"))
	moved := stub("c", "p", "r")
	moved.ParentPartitions = 4
	b.refuse(wire.Conflict, Retry, moved)
	moved = stub("c", "p", "r")
	moved.ParentID = "other"
	b.refuse(wire.Conflict, Retry, moved)
	b.do(stub("c", "p", "r"))
	b.refuse(wire.Conflict, Retry, UpdateRemote{Parent: "p", Child: "c", Epoch: "old", Resume: true})

	held, _ := b.Topic("c")
	b.do(UpdateRemote{Parent: "p", Child: "c", Epoch: "epoch-c", Pause: &PauseSet{Reason: "why", AtMS: 5}, Origin: Origin{Actor: "ann"}})
	require.False(t, held.Remote.Paused, "a value that a reader holds was written to")
	got, _ := b.Topic("c")
	require.Equal(t, "ann", got.Remote.PausedBy)
	b.do(UpdateRemote{Parent: "p", Child: "c", Epoch: "epoch-c", AcceptTarget: "new"})
	got, _ = b.Topic("c")
	require.False(t, got.Remote.Paused)
	require.Equal(t, "new", got.Remote.TargetID)
	b.refuse(wire.Invalid, "no such partition", UpdateRemote{
		Parent: "p", Child: "c", Epoch: "epoch-c", Skip: &SkipOne{Partition: 3},
	})
	b.refuse(wire.Conflict, Retry, UpdateRemote{Parent: "p", Child: "c", Epoch: "epoch-c", Resume: true, Detach: true})
	b.do(UpdateRemote{Parent: "p", Child: "c", Epoch: "epoch-c", Detach: true})
	_, ok := b.Topic("c")
	require.False(t, ok)
}

// covers: WRT-10
func TestSkipsKeepTheNewest(t *testing.T) {
	var m map[int][]int64
	for i := range MaxSkips {
		m = skipped(m, SkipOne{Partition: 1, Offset: int64(10 + i)})
	}
	full := m
	m = skipped(m, SkipOne{Partition: 1, Offset: 3})
	l := RemoteLink{Skip: m}
	require.Len(t, m[1], MaxSkips)
	require.True(t, l.Skips(1, 3), "the one just added must stay")
	require.False(t, l.Skips(1, 10))
	require.Equal(t, int64(10), full[1][0], "the older map was written to")
	require.Len(t, skipped(m, SkipOne{Partition: 1, Offset: 3})[1], MaxSkips)
}

func TestRetentionFloorOfRemoteChildren(t *testing.T) {
	b := newBook(t)
	b.do(CreateTopic{Topic: plain("p")})
	b.do(remote("r"))
	s := stub("c", "p", "r")
	s.Topic.FanoutDelayMS = 30 * HourMS
	b.do(s)
	set := func(ms int64) AlterTopic { return AlterTopic{Name: "p", ID: "id-p", RetentionMS: &ms} }
	b.refuse(wire.Conflict, "remote children", set(30*HourMS))
	b.do(set(31 * HourMS))
	b.do(set(0))
	b.refuse(wire.Conflict, "remote children", set(HourMS))

	require.Nil(t, retentionProblem([]*Topic{{Remote: &RemoteLink{}}}, HourMS, 2*HourMS), "one that is below may grow")
	require.NotNil(t, retentionProblem([]*Topic{{Remote: &RemoteLink{}}}, 3*HourMS, 2*HourMS))
}

func TestUsers(t *testing.T) {
	b := newBook(t)
	b.do(PutUser{User: User{Name: "u", UpdatedAtMS: 1}, Create: true})
	b.refuse(wire.Conflict, "exists", PutUser{User: User{Name: "u"}, Create: true})
	b.refuse(wire.Conflict, "changed", PutUser{User: User{Name: "u"}, ChangedMS: 2})
	b.do(PutUser{User: User{Name: "u", UpdatedAtMS: 2}, ChangedMS: 1})
	owned := plain("t")
	owned.Owner = "u"
	b.do(CreateTopic{Topic: owned})
	b.do(DeleteUser{Name: "u"})
	got, _ := b.Topic("t")
	require.Empty(t, got.Owner)
	b.refuse(wire.NotFound, "no such user", DeleteUser{Name: "u"})
}

func TestChangedWakesOnEveryEntry(t *testing.T) {
	b := newBook(t)
	for _, e := range []Entry{PutMember{Member: Member{ID: "a"}}, DeleteUser{Name: "nobody"}} {
		changed := b.Changed()
		_ = b.Apply(b.Applied()+1, e)
		<-changed
	}
	require.Equal(t, uint64(2), b.Applied())
}

func TestTopicsAfter(t *testing.T) {
	b := newBook(t)
	for _, n := range []string{"a", "ab", "b", "c"} {
		b.do(CreateTopic{Topic: plain(n)})
	}
	var names []string
	for _, r := range b.TopicsAfter("a", 2) {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"ab", "b"}, names)
	require.Len(t, b.TopicsAfter("", 9), 4)
}
