package cluster

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
)

// adminUser is the root admin of every cluster (broker.md, Security).
const adminUser = "admin"

// secrets are what a rig's nodes get by their environment, new for each rig.
type secrets struct {
	admin   string            // the admin's password, the same on both sides
	cluster map[string]string // by side: base64 of 32 bytes
	fake    string            // the password of the fake's one user
}

func newSecrets() secrets {
	return secrets{
		admin: hex.EncodeToString(random(16)), fake: hex.EncodeToString(random(16)),
		cluster: map[string]string{
			Source: base64.StdEncoding.EncodeToString(random(32)), Target: base64.StdEncoding.EncodeToString(random(32)),
		},
	}
}

func (s *secrets) list() []string {
	return []string{s.admin, s.fake, s.cluster[Source], s.cluster[Target]}
}

// env is the secret part of a node's environment.
func (s *secrets) env(side string) map[string]string {
	return map[string]string{"NARAD_ADMIN_PASSWORD": s.admin, "NARAD_CLUSTER_SECRET": s.cluster[side]}
}

// random returns n bytes of the system's random source.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

// fakeUser is the one user of a fake target.
const fakeUser = "link"
