package vault

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary stands in for a password (CRD-13).
const canary = "c4n4ry-p4ssw0rd-of-the-remote"

var (
	secretA = hex.EncodeToString(bytes.Repeat([]byte{0xa1}, 32))
	secretB = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xb2}, 33))
	salt    = bytes.Repeat([]byte{7}, 32)
)

func keys(t *testing.T, secret, previous string) *Keys {
	t.Helper()
	k, err := NewKeys(secret, previous)
	require.NoError(t, err)
	return k
}

func record() meta.Remote {
	return meta.Remote{Name: "dr", ID: "00000000000000aa", URL: "https://target.test:7942", Username: "copier", CAPEM: "", CredentialVersion: 1, Revision: 1, Limits: wire.DefaultLimits()}
}

func sealed(t *testing.T, k *Keys, r meta.Remote) meta.Remote {
	t.Helper()
	require.NoError(t, k.Seal(salt, &r, []byte(canary)))
	return r
}

// covers: CRD-03
func TestACiphertextIsBoundToEachField(t *testing.T) {
	k := keys(t, secretA, "")
	for _, bundle := range []string{"", "bundle"} {
		r := record()
		r.CAPEM = bundle
		r = sealed(t, k, r)
		got, err := k.Open(salt, &r)
		require.NoError(t, err)
		require.Equal(t, canary, string(got))
		for name, change := range map[string]func(*meta.Remote){
			"name":       func(r *meta.Remote) { r.Name = "dr2" },
			"id":         func(r *meta.Remote) { r.ID = "00000000000000ab" },
			"url":        func(r *meta.Remote) { r.URL += "0" },
			"username":   func(r *meta.Remote) { r.Username = "copier2" },
			"ca":         func(r *meta.Remote) { r.CAPEM += "x" },
			"ca dropped": func(r *meta.Remote) { r.CAPEM = map[string]string{"": "x", "bundle": ""}[r.CAPEM] },
			"shifted":    func(r *meta.Remote) { r.Name, r.ID = r.Name+r.ID[:1], r.ID[1:] },
			"nonce":      func(r *meta.Remote) { r.Ciphertext = flip(r.Ciphertext, headBytes-1) },
			"sealed":     func(r *meta.Remote) { r.Ciphertext = flip(r.Ciphertext, headBytes) },
			"tag":        func(r *meta.Remote) { r.Ciphertext = flip(r.Ciphertext, len(r.Ciphertext)-1) },
			"format":     func(r *meta.Remote) { r.Ciphertext = flip(r.Ciphertext, 0) },
			"cut":        func(r *meta.Remote) { r.Ciphertext = r.Ciphertext[:headBytes-1] },
			"empty":      func(r *meta.Remote) { r.Ciphertext = nil },
		} {
			changed := r
			change(&changed)
			_, bad := k.Open(salt, &changed)
			require.ErrorIs(t, bad, ErrOpen, name)
		}
		changed := r
		changed.Ciphertext = flip(r.Ciphertext, 1)
		_, err = k.Open(salt, &changed)
		require.ErrorIs(t, err, ErrKeyUnknown)
		_, err = k.Open(bytes.Repeat([]byte{8}, 32), &r)
		require.ErrorIs(t, err, ErrKeyUnknown, "the key comes from the salt too (CRD-02)")
	}
}

func flip(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}

// covers: CRD-02, CRD-03, CRD-05
func TestSealsDiffer(t *testing.T) {
	k := keys(t, secretA, "")
	a, b := sealed(t, k, record()), sealed(t, k, record())
	require.NotEqual(t, a.Ciphertext, b.Ciphertext, "a nonce per seal")
	require.NotContains(t, string(a.Ciphertext), canary)
	require.Equal(t, a.Fingerprint, b.Fingerprint)
	require.Regexp(t, "^[0-9a-f]{12}$", a.Fingerprint)
	require.Equal(t, k.Version(salt), a.KeyVersion)
	other := record()
	other.ID = "00000000000000bb"
	require.NotEqual(t, a.Fingerprint, sealed(t, k, other).Fingerprint, "one password on two remotes shows as two")
	require.NotEqual(t, a.Fingerprint, sealed(t, keys(t, secretB, ""), record()).Fingerprint)
	require.NotEqual(t, a.KeyVersion, keys(t, secretB, "").Version(salt))
	require.EqualValues(t, 3, k.Seals(salt))
}

// covers: CRD-10
func TestThePreviousSecretOpensAndSealsNothing(t *testing.T) {
	old := sealed(t, keys(t, secretA, ""), record())
	k := keys(t, secretB, secretA)
	got, err := k.Open(salt, &old)
	require.NoError(t, err)
	require.Equal(t, canary, string(got))
	require.NotEqual(t, old.KeyVersion, sealed(t, k, record()).KeyVersion)
	_, err = keys(t, secretB, "").Open(salt, &old)
	require.ErrorIs(t, err, ErrKeyUnknown)
	_, err = NewKeys(secretB, "short-"+canary)
	require.Error(t, err)
	require.NotContains(t, err.Error(), canary)
}

// covers: CRD-12
func TestWhichSecretsAreTaken(t *testing.T) {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	long := bytes.Repeat([]byte{1, 2, 3}, 22)
	for _, good := range []string{hex.EncodeToString(raw), strings.ToUpper(hex.EncodeToString(raw)), base64.StdEncoding.EncodeToString(raw), base64.StdEncoding.EncodeToString(long)} {
		require.NoError(t, keys(t, good, "").Usable(), good)
	}
	for _, bad := range []string{
		"", "hunter2-hunter2", canary, hex.EncodeToString(raw[:31]), base64.StdEncoding.EncodeToString(raw[:31]), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 33)), hex.EncodeToString(raw) + "0", hex.EncodeToString(raw) + "\n", strings.Repeat("x", 43), base64.StdEncoding.EncodeToString(raw) + "\n\n",
	} {
		k := keys(t, bad, "")
		r := record()
		err := k.Seal(salt, &r, []byte(canary))
		require.Equal(t, wire.Precondition, wire.KindOf(err), bad)
		require.Empty(t, r.Ciphertext)
		if bad != "" {
			require.NotContains(t, err.Error(), bad)
		}
	}
	require.Error(t, (*Keys)(nil).Usable())
}

// covers: CRD-06
func TestAKeySealsSoOften(t *testing.T) {
	k := keys(t, secretA, "")
	sealed(t, k, record())
	d, err := k.derive(k.current, salt)
	require.NoError(t, err)
	d.seals.Store(MaxSeals - 1)
	sealed(t, k, record())
	r := record()
	require.Equal(t, wire.Precondition, wire.KindOf(k.Seal(salt, &r, []byte(canary))))
	require.Empty(t, r.Ciphertext)
	require.EqualValues(t, MaxSeals, k.Seals(salt))
}

// covers: CRD-13
func TestNoPrintOfKeysShowsThem(t *testing.T) {
	k := keys(t, secretA, secretB)
	sealed(t, k, record())
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "vault keys", fmt.Sprintf(format, k))
	}
}
