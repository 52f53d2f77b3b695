package access

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"narad.example/narad/meta"
	"narad.example/narad/vfs"
	"narad.example/narad/wire"
)

// RootName is the name of the root admin.
const RootName = "admin"

// Bootstrap makes the root admin of a new cluster (broker.md Security).
type Bootstrap struct {
	Control *Control
	Propose Proposer
	FS      vfs.FS
	File    string // <data_dir>/admin-password
	Logger  *slog.Logger
}

// EnsureRoot creates the root admin when there is none yet, and does nothing when there is. Without a password it takes a random
// one and leaves it in File, mode 0600, on disk before the user exists: a crash in between leaves no cluster that nobody can
// enter. A retry takes the password that is already there. When another node was faster, the file is removed again.
func (b *Bootstrap) EnsureRoot(ctx context.Context, password string) error {
	if !b.Control.Enabled() {
		return nil
	}
	if _, ok := b.Control.state.User(RootName); ok {
		return nil
	}
	random := password == ""
	if random {
		var err error
		if password, err = b.keep(); err != nil {
			return fmt.Errorf("keep the root admin's password: %w", err)
		}
	}
	hash, err := b.Control.Hash(password)
	if err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	root := meta.User{Name: RootName, Hash: hash, Root: true, CreatedAtMS: now, UpdatedAtMS: now}
	_, err = b.Propose.Propose(ctx, meta.PutUser{User: root, Create: true})
	switch {
	case err == nil:
		if random {
			b.Logger.Warn("the root admin has a random password; read it and remove the file", "user", RootName, "file", b.File)
		}
		return nil
	case wire.KindOf(err) == wire.Conflict:
		if random {
			return b.FS.Remove(b.File)
		}
		return nil
	}
	return err
}

// keep returns the password in File, which it writes first when there is none.
func (b *Bootstrap) keep() (string, error) {
	f, err := b.FS.OpenFile(b.File, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	password, err := readOrWrite(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return password, b.FS.SyncDir(filepath.Dir(b.File)) // its name must outlive a power loss too
}

func readOrWrite(f vfs.File) (string, error) {
	old := make([]byte, passwordLen)
	n, err := f.ReadAt(old, 0)
	if n == len(old) {
		return string(old), nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	raw := make([]byte, base64.RawURLEncoding.DecodedLen(passwordLen))
	_, _ = rand.Read(raw) // never fails
	password := base64.RawURLEncoding.EncodeToString(raw)
	if _, err = f.WriteAt([]byte(password+"\n"), 0); err != nil {
		return "", err
	}
	return password, f.Sync()
}

// passwordLen is the length of the random password in characters: 24 random bytes.
const passwordLen = 32
