package link

import (
	"context"
	"slices"
	"strings"

	"narad.example/narad/wire"
)

// OwnPosture is this node's, which it answers to RemoteCheck (WRT-03).
func (s *site) OwnPosture() wire.Posture {
	set := s.o.Settings
	return wire.Posture{
		Security: set.Security, LegacyClusterAuth: set.LegacyClusterAuth, RaftTLS: set.RaftTLS, APIHopEncrypted: set.APIHopEncrypted,
	}
}

// everyPosture asks the other members, dead ones and Raft servers without a member record included: a password must not reach a node that
// lets strangers in. One that does not answer holds the write back (WRT-03).
func (s *site) everyPosture(ctx context.Context) error {
	if s.o.Members == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	answers, silent := s.o.Members.Postures(ctx)
	var insecure []string
	for member, p := range answers {
		if !p.Allows() {
			insecure = append(insecure, member)
		}
	}
	slices.Sort(insecure)
	slices.Sort(silent)
	switch {
	case len(insecure) > 0:
		return wire.Refuse(wire.Precondition, "remotes need security.enabled on and security.allow_legacy_cluster_auth off on every member, which %s lack",
			strings.Join(insecure, ", ")).With("class", string(wire.NodeInsecure)).With("members", insecure)
	case len(silent) > 0:
		return wire.Refuse(wire.Precondition, "members %s do not answer; bring them back first", strings.Join(silent, ", ")).
			With("class", "unreachable").With("members", silent)
	}
	return nil
}
