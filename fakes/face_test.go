package fakes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience is more than any request takes that is answered.
const patience = 30 * time.Second

// covers: ANS-21, HAR-03
func TestFacesRefuseEveryHandshake(t *testing.T) {
	g := newRig(t, Net{})
	other, err := NewCA(time.Now())
	require.NoError(t, err)
	certs, err := g.ca.Faces(time.Now(), other, "127.0.0.1")
	require.NoError(t, err)
	tap, err := StartTap(TapConfig{
		Name: "edge", Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Upstreams: []string{"http://127.0.0.1:1"}, Cert: g.cert, Faces: certs, Epoch: time.Now(),
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, tap.Close()) }()
	ping := func(limit time.Duration) got {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return g.do(ctx, http.MethodPost, "https://"+tap.Addr()+PingPath, "x")
	}
	reader, control := &Reader{HTTP: g.client}, "http://"+tap.ControlAddr()
	require.Equal(t, 200, ping(patience).status)
	says := map[string]string{
		FaceExpired: "expired", FaceNotYetValid: "not yet valid", FaceOtherName: "not", FaceOtherCA: "unknown authority", FaceOldTLS: "protocol version",
		FaceAlert: "internal error", FaceStall: "deadline exceeded", FacePlain: "HTTP response to HTTPS client",
	}
	require.Len(t, says, len(FaceNames))
	for _, face := range FaceNames {
		require.NoError(t, reader.Show(t.Context(), control, face))
		g.client.CloseIdleConnections()
		limit := patience
		if face == FaceStall {
			limit = time.Second // nothing else ends it
		}
		require.ErrorContains(t, ping(limit).err, says[face], face)
		eventually(t, func() bool {
			met, merr := reader.Met(t.Context(), control)
			require.NoError(t, merr)
			require.Zero(t, met[face].Served, face)
			return met[face].Accepted > 0
		}, "accepted with "+face)
	}
	require.NoError(t, tap.Show(FaceOtherCA))
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(other.PEM())))
	c, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", tap.Addr())
	require.NoError(t, err, "who trusts the other authority passes")
	require.NoError(t, c.Close())

	require.NoError(t, tap.Show(FaceGood))
	require.Equal(t, 200, ping(patience).status)
	require.Equal(t, 2, tap.Met()[FaceGood].Served)
	require.Error(t, tap.Show("surprised"))
	require.Error(t, reader.Show(t.Context(), control, "surprised"))
}

// A bad face ends what is open; a good one lets it live.
// covers: HAR-03
func TestABadFaceEndsConnections(t *testing.T) {
	g := newRig(t, Net{})
	tap := g.tap(t, "http://127.0.0.1:1")
	held, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", tap.Addr())
	require.NoError(t, err)
	defer func() { _ = held.Close() }()
	eventually(t, func() bool { return tap.Met()[FaceGood].Accepted == 1 }, "accepted")
	require.NoError(t, tap.Show(FaceGood))
	require.NoError(t, held.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = held.Read(make([]byte, 1))
	require.ErrorContains(t, err, "timeout")
	require.NoError(t, tap.Show(FaceAlert))
	require.NoError(t, held.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err = held.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "timeout")
}
