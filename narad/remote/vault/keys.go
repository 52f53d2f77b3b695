package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"sync/atomic"

	"narad.example/narad/meta"
	"narad.example/narad/wire"
)

// MaxSeals is how often one key may seal on a node (CRD-06): with random nonces more would risk that one comes twice.
const MaxSeals = 1 << 30

// Why a ciphertext does not open. Neither says anything about the password.
var (
	ErrKeyUnknown = errors.New("vault: the ciphertext is under a key that this node does not have")
	ErrOpen       = errors.New("vault: the ciphertext does not open for this remote")
)

// The purpose labels of the derived keys. Changing one makes every stored ciphertext unreadable.
const (
	labelSeal        = "narad remote credential seal v1"
	labelFingerprint = "narad remote credential fingerprint v1"
	labelVersion     = "narad remote credential key version v1"
)

// The ciphertext is one format byte, the version of the key, the nonce and the sealed password.
const (
	format       = 1
	versionBytes = 6
	nonceBytes   = 12
	headBytes    = 1 + versionBytes + nonceBytes
)

// Keys seals and opens passwords under the keys of the cluster secret. It is safe for concurrent use.
type Keys struct {
	current, previous []byte // decoded secrets, nil when there is none that can be used

	reopened atomic.Int64 // passwords opened to be sealed again

	mu      sync.Mutex // guards derived
	derived map[string]*key
}

// key is what one secret and one salt give.
type key struct {
	version     [versionBytes]byte
	aead        cipher.AEAD
	fingerprint []byte
	seals       atomic.Int64
}

// NewKeys takes the cluster secret and the one before it (may be empty). A secret that CRD-12 does not take is no error:
// such a Keys refuses to seal. A previous secret that cannot have sealed anything is one, since it could only be a mistake.
func NewKeys(secret, previous string) (*Keys, error) {
	k := &Keys{derived: map[string]*key{}}
	k.current, _ = decodeSecret(secret)
	if previous != "" {
		var ok bool
		if k.previous, ok = decodeSecret(previous); !ok {
			return nil, errors.New("NARAD_CLUSTER_SECRET_PREVIOUS is not hex or padded base64 of at least 32 bytes")
		}
	}
	return k, nil
}

// String shows nothing of the keys (CRD-13).
func (k *Keys) String() string { return "vault keys" }

// GoString is String.
func (k *Keys) GoString() string { return k.String() }

// Usable returns nil when Seal can work, else the refusal of CRD-12.
func (k *Keys) Usable() error {
	if k == nil || k.current == nil {
		return wire.Refuse(wire.Precondition,
			"remotes need a cluster secret (NARAD_CLUSTER_SECRET) of at least 32 random bytes in hex or padded base64")
	}
	return nil
}

// Version names the current key in answers; empty without a usable secret or a salt.
func (k *Keys) Version(salt []byte) string {
	if k.Usable() != nil || len(salt) == 0 {
		return ""
	}
	d, err := k.derive(k.current, salt)
	if err != nil {
		return ""
	}
	return hex.EncodeToString(d.version[:])
}

// Seals counts what the current key has sealed on this node since it started.
func (k *Keys) Seals(salt []byte) int64 {
	if k.Usable() != nil || len(salt) == 0 {
		return 0
	}
	d, err := k.derive(k.current, salt)
	if err != nil {
		return 0
	}
	return d.seals.Load()
}

// Seal seals the password for r as it stands and sets its Ciphertext, KeyVersion and Fingerprint. It does not keep the
// password. The error is a *wire.Problem.
func (k *Keys) Seal(salt []byte, r *meta.Remote, password []byte) error {
	if err := k.Usable(); err != nil {
		return err
	}
	d, err := k.derive(k.current, salt)
	if err != nil {
		return wire.Refuse(wire.Internal, "the key cannot be derived")
	}
	if d.seals.Add(1) > MaxSeals {
		d.seals.Add(-1)
		return wire.Refuse(wire.Precondition, "the key has sealed as often as it may; rotate the cluster secret")
	}
	out := make([]byte, headBytes, headBytes+len(password)+d.aead.Overhead())
	out[0] = format
	copy(out[1:], d.version[:])
	nonce := out[1+versionBytes : headBytes]
	_, _ = rand.Read(nonce) // crypto/rand never fails: it ends the process instead
	r.Ciphertext = d.aead.Seal(out, nonce, password, binding(d, r))
	r.KeyVersion = hex.EncodeToString(d.version[:])
	r.Fingerprint = d.print(r.ID, password)
	return nil
}

// Open returns the password of r, which the caller wipes. The error is ErrKeyUnknown or ErrOpen.
func (k *Keys) Open(salt []byte, r *meta.Remote) ([]byte, error) {
	if len(r.Ciphertext) < headBytes || r.Ciphertext[0] != format {
		return nil, ErrOpen
	}
	version := [versionBytes]byte(r.Ciphertext[1:])
	for _, secret := range [][]byte{k.current, k.previous} {
		if secret == nil {
			continue
		}
		d, err := k.derive(secret, salt)
		if err != nil || d.version != version {
			continue
		}
		password, err := d.aead.Open(nil, r.Ciphertext[1+versionBytes:headBytes], r.Ciphertext[headBytes:], binding(d, r))
		if err != nil {
			return nil, ErrOpen
		}
		return password, nil
	}
	return nil, ErrKeyUnknown
}

// Reseal puts a ciphertext of the same password under the current key in place, and tells whether r was under another one. It changes
// Ciphertext, KeyVersion and Fingerprint (DEC-32). The error is ErrKeyUnknown, ErrOpen or a *wire.Problem of Seal.
func (k *Keys) Reseal(salt []byte, r *meta.Remote) (changed bool, err error) {
	if err = k.Usable(); err != nil {
		return false, err
	}
	if r.KeyVersion == k.Version(salt) {
		return false, nil
	}
	password, err := k.Open(salt, r)
	if err != nil {
		return false, err
	}
	k.reopened.Add(1)
	defer wipe(password)
	return true, k.Seal(salt, r, password)
}

// Reopened counts the passwords that Reseal opened since this node started (narad_remote_reseal_opens_total).
func (k *Keys) Reopened() int64 { return k.reopened.Load() }

// derive makes the keys of a secret and a salt, once.
func (k *Keys) derive(secret, salt []byte) (*key, error) {
	id := string(secret) + string(salt)
	k.mu.Lock()
	defer k.mu.Unlock()
	if d := k.derived[id]; d != nil {
		return d, nil
	}
	d := &key{}
	sealing, err := hkdf.Key(sha512.New, secret, salt, labelSeal, 32)
	if err != nil {
		return nil, err
	}
	defer wipe(sealing)
	block, err := aes.NewCipher(sealing)
	if err != nil {
		return nil, err
	}
	if d.aead, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	if d.fingerprint, err = hkdf.Key(sha512.New, secret, salt, labelFingerprint, sha512.Size); err != nil {
		return nil, err
	}
	version, err := hkdf.Key(sha512.New, secret, salt, labelVersion, versionBytes)
	if err != nil {
		return nil, err
	}
	d.version = [versionBytes]byte(version)
	k.derived[id] = d
	return d, nil
}

// print is CRD-05.
func (d *key) print(id string, password []byte) string {
	mac := hmac.New(sha512.New, d.fingerprint)
	mac.Write([]byte(id))
	mac.Write(password)
	return hex.EncodeToString(mac.Sum(nil)[:6])
}

// binding is the associated data (CRD-03). Each field carries its length, so that no two remotes have the same.
func binding(d *key, r *meta.Remote) []byte {
	b := append([]byte{format}, d.version[:]...)
	for _, field := range []string{r.Name, r.ID, r.URL, r.Username, trustAnchor(r.CAPEM)} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	return b
}

// trustAnchor is the SHA-512 of the CA bundle, or a word that no hash can be.
func trustAnchor(bundle string) string {
	if bundle == "" {
		return "system roots"
	}
	sum := sha512.Sum512([]byte(bundle))
	return string(sum[:])
}
