package access

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/crypto/bcrypt"

	"narad.example/narad/meta"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a state that applies entries as they are proposed.
type world struct {
	*meta.State
	index   uint64
	entries []meta.Entry
}

func (w *world) Propose(_ context.Context, e meta.Entry) (uint64, error) {
	w.index++
	w.entries = append(w.entries, e)
	return w.index, w.Apply(w.index, e)
}

func newWorld(t *testing.T) (*world, *Control, *Users) {
	w := &world{State: meta.NewState()}
	c := New(Options{State: w, Cost: bcrypt.MinCost})
	b := Bootstrap{Control: c, Propose: w, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, b.EnsureRoot(t.Context(), "root-password"))
	return w, c, NewUsers(c, w)
}

func root() *Identity { return &Identity{Name: RootName, Admin: true, Root: true} }

func kind(t *testing.T, want wire.Kind, err error, text string) {
	t.Helper()
	require.Error(t, err)
	require.Equal(t, want, wire.KindOf(err), "%v", err)
	require.Contains(t, err.Error(), text)
}

// covers: BRK-08
func TestCheck(t *testing.T) {
	w, c, users := newWorld(t)
	id, err := c.Check(t.Context(), RootName, "root-password")
	require.NoError(t, err)
	require.True(t, id.Root && id.Admin)
	_, err = c.Check(t.Context(), RootName, "wrong")
	kind(t, wire.Unauthorized, err, "unauthorized")
	_, err = c.Check(t.Context(), "nobody", "root-password")
	kind(t, wire.Unauthorized, err, "unauthorized")

	_, err = users.Create(t.Context(), root(), wire.CreateUser{Username: "u", Password: "one"})
	require.NoError(t, err)
	_, err = c.Check(t.Context(), "u", "one")
	require.NoError(t, err)
	// A changed password ends what was remembered, with the entry that changes it.
	require.NoError(t, users.ChangePassword(t.Context(), root(), "u", wire.ChangePassword{NewPassword: "two"}))
	_, err = c.Check(t.Context(), "u", "one")
	kind(t, wire.Unauthorized, err, "")
	_, err = c.Check(t.Context(), "u", "two")
	require.NoError(t, err)
	// Grants are read anew each time, a deleted user is gone at once.
	_, err = users.ReplaceGrants(t.Context(), root(), "u", []wire.Grant{{Action: wire.ActionProduce, Patterns: []string{"a*"}}})
	require.NoError(t, err)
	id, err = c.Check(t.Context(), "u", "two")
	require.NoError(t, err)
	require.True(t, id.Granted(wire.ActionProduce, "ab"))
	require.NoError(t, users.Delete(t.Context(), root(), "u"))
	_, err = c.Check(t.Context(), "u", "two")
	kind(t, wire.Unauthorized, err, "")
	for _, e := range w.entries {
		if p, ok := e.(meta.PutUser); ok {
			require.False(t, bytes.Contains(p.User.Hash, []byte("two")))
		}
	}
	require.True(t, Anyone().Admin)
	off := New(Options{State: w, Disabled: true})
	id, err = off.Check(t.Context(), "", "")
	require.NoError(t, err)
	require.True(t, id.Admin)
}

// covers: BRK-08
func TestWrongPasswordsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c, users := newWorld(t)
		_, err := users.Create(t.Context(), root(), wire.CreateUser{Username: "u", Password: "right"})
		require.NoError(t, err)
		other := New(Options{State: w, Cost: bcrypt.MinCost})
		_, err = other.Check(t.Context(), "u", "right")
		require.NoError(t, err)
		for range freeTries {
			_, err = c.Check(t.Context(), "u", "wrong")
			kind(t, wire.Unauthorized, err, "")
			_, err = c.Check(t.Context(), "nobody", "wrong")
			kind(t, wire.Unauthorized, err, "")
		}
		_, err = c.Check(t.Context(), "nobody", "wrong")
		kind(t, wire.Unauthorized, err, "")
		_, err = c.Check(t.Context(), "u", "right")
		kind(t, wire.Throttled, err, "too many wrong passwords")
		p, ok := errors.AsType[*wire.Problem](err)
		require.True(t, ok)
		require.Equal(t, 12*time.Second, p.RetryAfter)

		time.Sleep(12*time.Second - time.Nanosecond)
		_, err = c.Check(t.Context(), "u", "right")
		kind(t, wire.Throttled, err, "")
		time.Sleep(time.Nanosecond)
		_, err = c.Check(t.Context(), "u", "wrong") // the one more try
		kind(t, wire.Unauthorized, err, "")
		_, err = c.Check(t.Context(), "u", "right")
		kind(t, wire.Throttled, err, "")
		time.Sleep(12 * time.Second)
		_, err = c.Check(t.Context(), "u", "right")
		require.NoError(t, err)
		_, err = c.Check(t.Context(), "u", "wrong") // and all five are back
		kind(t, wire.Unauthorized, err, "")
		// Who is verified is not locked out by somebody else's guesses.
		for range freeTries + 1 {
			_, _ = other.Check(t.Context(), "u", "wrong")
		}
		_, err = other.Check(t.Context(), "u", "right")
		require.NoError(t, err)
	})
}

// covers: BRK-08
func TestGuessesAtOnceGetNoMoreThanFive(t *testing.T) {
	_, c, _ := newWorld(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	counts := map[wire.Kind]int{}
	for i := range 50 {
		wg.Go(func() {
			_, err := c.Check(t.Context(), RootName, strings.Repeat("x", i+1))
			mu.Lock()
			defer mu.Unlock()
			counts[wire.KindOf(err)]++
		})
	}
	wg.Wait()
	require.Equal(t, freeTries, counts[wire.Unauthorized])
	require.Equal(t, 50-freeTries, counts[wire.Throttled])
}

// covers: BRK-08
func TestGrantsAndOwnership(t *testing.T) {
	w, c, _ := newWorld(t)
	for i, topic := range []meta.Topic{
		{Name: "orders", ID: "1", Partitions: 1, Nodes: []string{"n"}, Owner: "ann"},
		{Name: "free", ID: "2", Partitions: 1, Nodes: []string{"n"}},
	} {
		require.NoError(t, w.Apply(uint64(100+i), meta.CreateTopic{Topic: topic}))
	}
	find := func(name string) *Topic {
		topic, ok := c.Find(name)
		require.True(t, ok)
		return &topic
	}
	ann := Identity{Name: "ann"}
	bob := Identity{Name: "bob", grants: []wire.Grant{
		{Action: wire.ActionConsume, Patterns: []string{"or*", "exact"}}, {Action: wire.ActionCreate, Patterns: []string{"*"}},
	}}
	require.True(t, ann.Owns(find("orders")) && ann.Reads(find("orders")))
	require.False(t, ann.Granted(wire.ActionProduce, "orders"), "owning is no grant to produce")
	require.False(t, ann.Reads(find("free")))
	require.False(t, (&Identity{}).Owns(find("free")), "nobody owns what has no owner")
	require.True(t, bob.Reads(find("orders")))
	require.False(t, bob.Owns(find("orders")))
	require.True(t, bob.Granted(wire.ActionConsume, "orders"))
	require.True(t, bob.Granted(wire.ActionConsume, "exact"))
	require.False(t, bob.Granted(wire.ActionConsume, "exactly"))
	require.False(t, bob.Granted(wire.ActionConsume, "Orders"))
	require.False(t, bob.Granted(wire.ActionProduce, "orders"))
	require.True(t, bob.Granted(wire.ActionCreate, "anything"))
	require.True(t, root().Owns(find("free")))
	require.False(t, c.Linked("orders"))
}

// covers: BRK-08, BRK-12
func TestUserRules(t *testing.T) {
	_, c, users := newWorld(t)
	ctx := t.Context()
	produce := []wire.Grant{{Action: wire.ActionProduce, Patterns: []string{"a", "b*", "*"}}}
	admin := []wire.Grant{{Action: wire.ActionAdmin}}
	made, err := users.Create(ctx, root(), wire.CreateUser{Username: "boss", Password: "p", Grants: admin})
	require.NoError(t, err)
	require.Equal(t, "boss", made.Username)
	boss, err := c.Check(ctx, "boss", "p")
	require.NoError(t, err)
	require.True(t, boss.Admin && !boss.Root)
	_, err = users.Create(ctx, &boss, wire.CreateUser{Username: "u", Password: strings.Repeat("p", 72), Grants: produce})
	require.NoError(t, err)
	u := Identity{Name: "u"}

	for _, name := range []string{"", ".", "..", "a b", "ü", strings.Repeat("a", 65)} {
		_, err = users.Create(ctx, root(), wire.CreateUser{Username: name, Password: "p"})
		kind(t, wire.Invalid, err, "username")
	}
	for _, password := range []string{"", strings.Repeat("p", 73)} {
		_, err = users.Create(ctx, root(), wire.CreateUser{Username: "x", Password: password})
		kind(t, wire.Invalid, err, "password must be 1 to 72 bytes")
	}
	for _, g := range []wire.Grant{
		{Action: "read", Patterns: []string{"a"}},
		{Action: wire.ActionAdmin, Patterns: []string{"a"}},
		{Action: wire.ActionProduce},
		{Action: wire.ActionProduce, Patterns: []string{""}},
		{Action: wire.ActionProduce, Patterns: []string{"a*b"}},
		{Action: wire.ActionProduce, Patterns: []string{"a**"}},
		{Action: wire.ActionProduce, Patterns: []string{strings.Repeat("a", 256)}},
	} {
		_, err = users.Create(ctx, root(), wire.CreateUser{Username: "x", Password: "p", Grants: []wire.Grant{g}})
		kind(t, wire.Invalid, err, "")
	}
	_, err = users.Create(ctx, root(), wire.CreateUser{Username: "u", Password: "p"})
	kind(t, wire.Conflict, err, "exists")
	_, err = users.Create(ctx, &boss, wire.CreateUser{Username: "x", Password: "p", Grants: admin})
	kind(t, wire.Denied, err, "only the root admin gives admin")
	_, err = users.ReplaceGrants(ctx, &boss, "u", admin)
	kind(t, wire.Denied, err, "only the root admin gives admin")
	_, err = users.ReplaceGrants(ctx, &boss, "boss", produce)
	kind(t, wire.Denied, err, "own grants")
	kind(t, wire.Denied, users.Delete(ctx, &boss, "boss"), "themselves")
	kind(t, wire.Denied, users.Delete(ctx, &boss, RootName), "root")
	kind(t, wire.NotFound, users.Delete(ctx, &boss, "x"), "no such user")
	kind(t, wire.Denied, users.Delete(ctx, &u, "boss"), "admin only")
	_, err = users.List(&u)
	kind(t, wire.Denied, err, "admin only")
	_, err = users.Get(&u, "u")
	kind(t, wire.Denied, err, "admin only")

	change := func(by *Identity, name, next, current string) error {
		return users.ChangePassword(ctx, by, name, wire.ChangePassword{NewPassword: next, CurrentPassword: current})
	}
	kind(t, wire.Denied, change(&u, "u", "new", "wrong"), "current_password is wrong")
	kind(t, wire.Denied, change(&u, "u", "new", ""), "current_password is wrong")
	kind(t, wire.Denied, change(&u, "boss", "new", ""), "admin only")
	kind(t, wire.Denied, change(&boss, RootName, "new", ""), "root")
	kind(t, wire.Denied, change(root(), RootName, "new", "wrong"), "current_password is wrong")
	kind(t, wire.NotFound, change(&boss, "x", "new", ""), "no such user")
	require.NoError(t, change(&u, "u", "new", strings.Repeat("p", 72)))
	require.NoError(t, change(&boss, "u", "newer", ""))
	require.NoError(t, change(root(), RootName, "new", "root-password"))

	list, err := users.List(root())
	require.NoError(t, err)
	require.Len(t, list, 3)
	require.Equal(t, []string{"admin", "boss", "u"}, []string{list[0].Username, list[1].Username, list[2].Username})
	require.True(t, list[0].Root)
	require.Equal(t, produce, list[2].Grants)
	require.Greater(t, list[2].UpdatedAtMS, list[2].CreatedAtMS)
}

// covers: BRK-08, CRD-13
func TestRandomRootPassword(t *testing.T) {
	w := &world{State: meta.NewState()}
	c := New(Options{State: w, Cost: bcrypt.MinCost})
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("data", 0o700))
	require.NoError(t, mem.SyncDir("."))
	var log bytes.Buffer
	b := Bootstrap{Control: c, Propose: w, FS: mem, File: "data/admin-password", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	require.NoError(t, b.EnsureRoot(t.Context(), ""))
	f, err := mem.OpenFile("data/admin-password", 0, 0)
	require.NoError(t, err)
	content := make([]byte, passwordLen)
	_, err = f.ReadAt(content, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = c.Check(t.Context(), RootName, string(content))
	require.NoError(t, err)
	require.NotContains(t, log.String(), string(content))
	require.Contains(t, log.String(), "admin-password")

	// A second start changes nothing.
	before := len(w.entries)
	require.NoError(t, b.EnsureRoot(t.Context(), "another"))
	require.Len(t, w.entries, before)

	// The file outlives a power loss, and goes when another node was faster.
	mem.DropUnsynced()
	b.Control, b.Propose = New(Options{State: meta.NewState(), Cost: bcrypt.MinCost}), conflict{}
	require.NoError(t, b.EnsureRoot(t.Context(), ""))
	_, err = mem.Stat("data/admin-password")
	require.ErrorIs(t, err, os.ErrNotExist)
	kept, err := mem.OpenFile(b.File, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	_, err = kept.WriteAt(content, 0)
	require.NoError(t, err)
	require.NoError(t, kept.Close())

	// A node that crashed between file and entry takes the same password again.
	w2 := &world{State: meta.NewState()}
	b.Control, b.Propose = New(Options{State: w2, Cost: bcrypt.MinCost}), w2
	require.NoError(t, b.EnsureRoot(t.Context(), ""))
	_, err = b.Control.Check(t.Context(), RootName, string(content))
	require.NoError(t, err)
}

type conflict struct{}

func (conflict) Propose(context.Context, meta.Entry) (uint64, error) {
	return 0, wire.Refuse(wire.Conflict, "user exists")
}

func BenchmarkCheckVerified(b *testing.B) {
	w := &world{State: meta.NewState()}
	c := New(Options{State: w, Cost: bcrypt.MinCost})
	hash, err := c.Hash("p")
	require.NoError(b, err)
	_, err = w.Propose(b.Context(), meta.PutUser{User: meta.User{Name: "u", Hash: hash}, Create: true})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Check(b.Context(), "u", "p"); err != nil {
			b.Fatal(err)
		}
	}
}
