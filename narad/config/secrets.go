package config

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Secrets come from the environment only and print as nothing.
type Secrets struct {
	AdminPassword  string // NARAD_ADMIN_PASSWORD; empty lets the first start make one
	ClusterSecret  string // NARAD_CLUSTER_SECRET
	PreviousSecret string // NARAD_CLUSTER_SECRET_PREVIOUS: opens old ciphertexts, never authenticates
}

// String hides the values.
func (Secrets) String() string { return "secrets (hidden)" }

// GoString hides the values.
func (Secrets) GoString() string { return "secrets (hidden)" }

// Format hides the values from every verb.
func (Secrets) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("secrets (hidden)")) }

// SecretsFrom reads them from an environment and takes them out of this process's own, so that no child inherits them.
func SecretsFrom(env []string) Secrets {
	var s Secrets
	for name, field := range map[string]*string{
		"NARAD_ADMIN_PASSWORD": &s.AdminPassword, "NARAD_CLUSTER_SECRET": &s.ClusterSecret,
		"NARAD_CLUSTER_SECRET_PREVIOUS": &s.PreviousSecret,
	} {
		i := slices.IndexFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
		if i >= 0 {
			*field = strings.TrimPrefix(env[i], name+"=")
		}
		_ = os.Unsetenv(name)
	}
	return s
}
