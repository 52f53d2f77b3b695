package meta

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The first ID stays, a folder tells it before anything is applied and without being written to, and a snapshot carries it; an older release
// takes neither the entry nor such a snapshot.
//
// covers: BRK-07, WRT-02
func TestAFolderKnowsItsCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log := t.TempDir(), &lines{}
		f, err := Look(filepath.Join(dir, "none"))
		require.NoError(t, err)
		require.Equal(t, Folder{Fresh: true}, f)
		s := alone(t, dir, log)
		require.Empty(t, s.Cluster())
		_, err = s.Propose(t.Context(), NameCluster{ID: "a"})
		require.ErrorContains(t, err, "member one is not known to run", "the gate")
		_, err = s.Propose(t.Context(), member("one"))
		require.NoError(t, err)
		for _, id := range []string{"a", "b"} {
			_, err = s.Propose(t.Context(), NameCluster{ID: id})
			require.NoError(t, err)
			require.Equal(t, "a", s.Cluster())
		}
		require.NoError(t, s.Close())
		before, err := os.ReadFile(filepath.Join(dir, "raft.db"))
		require.NoError(t, err)
		f, err = Look(dir)
		require.NoError(t, err)
		require.Equal(t, Folder{Cluster: "a", Node: "one"}, f)
		after, err := os.ReadFile(filepath.Join(dir, "raft.db"))
		require.NoError(t, err)
		require.Equal(t, before, after)

		s = alone(t, dir, log)
		defer func() { require.NoError(t, s.Close()) }()
		require.Equal(t, "a", s.Cluster(), "before anything is applied")
		require.NoError(t, s.WaitApplied(t.Context(), 4))
		var b bytes.Buffer
		require.NoError(t, s.snapshot().write(&b))
		kept := ""
		for newest, whole := range map[EntryType]bool{NewestType: true, NewestOfRemotes: false, NewestOlder: false} {
			other := newFSM(NewState(), newest, slog.New(slog.DiscardHandler))
			other.keep = func(id string) { kept = id }
			err = other.Restore(io.NopCloser(bytes.NewReader(b.Bytes())))
			require.Equal(t, whole, err == nil, newest)
			require.Equal(t, whole, other.state.ClusterID() == "a")
		}
		require.Equal(t, "a", kept)
	})
}

// What a hello is answered, by what both ends know.
//
// covers: BRK-07
func TestWhoMayOpenARaftConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := alone(t, t.TempDir(), &lines{})
		defer func() { require.NoError(t, s.Close()) }()
		for _, c := range []struct {
			mine string
			says hello
			want string
		}{
			{"", hello{Node: "x"}, ""},
			{"", hello{Node: "x", Cluster: "a"}, ""}, // the leader of the cluster that lets this one in
			{"a", hello{Node: "x", Cluster: "a"}, ""},
			{"a", hello{Node: "x", Cluster: "b"}, saysOtherCluster},
			{"a", hello{Node: "one"}, ""}, // a member that has applied nothing yet
			{"a", hello{Node: "x"}, saysNoMember},
			{"a", hello{Node: "x", Cluster: "a", To: "one"}, ""},
			{"a", hello{Node: "x", Cluster: "a", To: "two"}, saysOtherNode},
			{"", hello{Node: "x", To: "two"}, saysOtherNode},
		} {
			g := &greeter{node: "one", cluster: c.mine, log: slog.New(slog.DiscardHandler)}
			g.servers.Store(s.raft)
			require.Equal(t, c.want, g.judge(c.says), c)
		}
	})
}

// dialled is what one end of a connection reads that the other one opened with these bytes.
func dialled(t *testing.T, g *greeter, first []byte) (got []byte, err error) {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = near.Write(first)
		_, _ = io.Copy(io.Discard, near)
	}()
	in := &incoming{Conn: far, by: g}
	got = make([]byte, 16)
	n, err := in.Read(got)
	require.NoError(t, errors.Join(near.Close(), far.Close()))
	<-done
	return got[:n], err
}

// Bytes that are no hello pass while the cluster has no ID, as a release before it sends them, and end the connection afterwards; so do a hello
// that does not decode, one that is too long and one that never ends.
//
// covers: BRK-07, WRT-02
func TestAConnectionWithoutAHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var strange []error
		g := &greeter{node: "one", log: slog.New(slog.DiscardHandler), strangers: func(err error) { strange = append(strange, err) }}
		got, err := dialled(t, g, []byte{1, 2, 3})
		require.NoError(t, err)
		require.Equal(t, []byte{1, 2, 3}, got)
		for _, bad := range []string{"NRDX\x00\x02{}", "NRD\x01\x00\x02{}", "NRD\x01\xff\xff", "NRD\x01\x00\x09{\"node\":7"} {
			_, err = dialled(t, g, []byte(bad))
			require.ErrorIs(t, err, io.EOF, hex.EncodeToString([]byte(bad)))
		}
		start := time.Now()
		_, err = dialled(t, g, []byte("NRD\x01\x00\x40{"))
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, greetTimeout, time.Since(start))
		require.Empty(t, strange)

		g.learn("a")
		g.learn("b")
		require.Equal(t, "a", g.known())
		_, err = dialled(t, g, []byte{1, 2, 3})
		require.ErrorIs(t, err, io.EOF)
		require.Len(t, strange, 1)
		require.ErrorIs(t, strange[0], errNoHello)
	})
}

// Whoever connects and says nothing, or stops within its first words, holds a connection for no longer than a hello may take.
//
// covers: BRK-07
func TestASilentConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, known := range []string{"", "a"} {
			near, far := net.Pipe()
			g := &greeter{node: "one", cluster: known, log: slog.New(slog.DiscardHandler)}
			start := time.Now()
			_, err := (&incoming{Conn: far, by: g}).Read(make([]byte, 16))
			require.ErrorIs(t, err, io.EOF)
			require.Equal(t, greetTimeout, time.Since(start))
			require.NoError(t, errors.Join(near.Close(), far.Close()))
		}
	})
}

// A refused connection ends in order, whatever was said on it: what nobody read would make a reset of its end.
//
// covers: BRK-07
func TestARefusedConnectionEndsInOrder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	_, err = c.Write([]byte("somebody's words"))
	require.NoError(t, err)
	far, err := l.Accept()
	require.NoError(t, err)
	g := &greeter{node: "one", cluster: "a", log: slog.New(slog.DiscardHandler)}
	_, err = (&incoming{Conn: far, by: g}).Read(make([]byte, 16))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, far.Close())
	_, err = io.ReadAll(c)
	require.NoError(t, err)
}
