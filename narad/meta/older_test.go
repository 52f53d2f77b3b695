package meta

import (
	"bytes"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// A replica that poses as a release before remotes proposes none of their entries, stops at one that a newer leader committed, applies
// nothing behind it, and says which type that was. The present release goes on from there over the same folder.
//
// covers: WRT-02
func TestAnOlderReleaseStopsAtAnEntryOfRemotes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log := t.TempDir(), &lines{}
		open := func(newest EntryType) *Store {
			s, err := Open(Options{
				NodeID: "one", Dir: dir, Bootstrap: []Server{{ID: "one", Addr: "one:1"}}, Newest: newest, Logger: slog.New(slog.NewTextHandler(log, nil)),
			})
			require.NoError(t, err)
			return s
		}
		s := open(NewestOlder)
		require.EqualValues(t, 32, s.Newest())
		_, err := s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		put, err := Encode(remote("r"))
		require.NoError(t, err)
		_, err = s.ProposeLocal(t.Context(), put)
		require.Equal(t, wire.Precondition, wire.KindOf(err))
		require.NoError(t, s.Failed(), "it did not enter the log")

		before := s.Applied()
		_ = s.raft.Apply(put, time.Second).Error() // what a newer leader would have done
		synctest.Wait()
		require.ErrorIs(t, s.Failed(), ErrFailed)
		require.ErrorIs(t, s.Failed(), ErrUndecodable)
		require.Contains(t, log.String(), "type 33")
		require.Equal(t, before, s.Applied())
		_, err = s.Propose(t.Context(), CreateTopic{Topic: on("one", "t")})
		require.Equal(t, wire.Unavailable, wire.KindOf(err))
		require.NoError(t, s.Close())

		s = open(0)
		defer func() { require.NoError(t, s.Close()) }()
		require.Equal(t, NewestType, s.Newest())
		_, err = s.Propose(t.Context(), CreateTopic{Topic: on("one", "t")})
		require.NoError(t, err)
		require.Len(t, s.Remotes(), 1)
	})
}

// A snapshot that holds a remote, or a link, is of a newer release for it.
//
// covers: WRT-02
func TestAnOlderReleaseRestoresNoRemote(t *testing.T) {
	remoteToo, link := plain("p"), plain("stub")
	link.Remote = &RemoteLink{Remote: "r"}
	for name, fill := range map[string]struct {
		with func(tx)
		ok   bool
	}{
		"topics":   {func(t tx) { t.put(tableTopics, &remoteToo) }, true},
		"a remote": {func(t tx) { t.put(tableRemotes, &Remote{Name: "r", ID: "1"}) }, false},
		"a link":   {func(t tx) { t.put(tableTopics, &link) }, false},
	} {
		s := NewState()
		txn := s.db.Txn(true)
		fill.with(tx{txn})
		txn.Commit()
		var b bytes.Buffer
		require.NoError(t, s.snapshot().write(&b))
		whole := b.Bytes()
		f := newFSM(NewState(), NewestType, slog.New(slog.DiscardHandler))
		require.NoError(t, f.Restore(io.NopCloser(bytes.NewReader(whole))), name)
		f = newFSM(NewState(), NewestOlder, slog.New(slog.DiscardHandler))
		if err := f.Restore(io.NopCloser(bytes.NewReader(whole))); fill.ok {
			require.NoError(t, err, name)
		} else {
			require.ErrorIs(t, err, errSnapshot, name)
			require.Empty(t, f.state.Topics(), name)
		}
	}
}
