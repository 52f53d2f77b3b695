package link

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/wire"
)

// crew is the other members, as RemoteCheck finds them.
type crew struct {
	postures map[string]wire.Posture
	silent   []string
	check    func(CheckAsk) map[string]CheckReply
}

func (c crew) Holdings(context.Context) (map[string][]Holding, []string) { return nil, nil }
func (c crew) Check(_ context.Context, q CheckAsk) (map[string]CheckReply, []string) {
	return c.check(q), c.silent
}
func (c crew) Postures(context.Context) (map[string]wire.Posture, []string) {
	return c.postures, c.silent
}

// A write of a remote waits for every member's word, and names the ones that hold it back.
//
// covers: WRT-03
func TestEveryMemberMustBeSecure(t *testing.T) {
	good := wire.Posture{Security: true}
	for name, tc := range map[string]struct {
		crew    crew
		class   string
		members []string
	}{
		"all well": {crew: crew{postures: map[string]wire.Posture{"n2": good, "n3": good}}},
		"security off": {
			crew: crew{postures: map[string]wire.Posture{"n2": {}, "n3": good}}, class: "node_insecure", members: []string{"n2"},
		},
		"legacy authentication": {
			crew:  crew{postures: map[string]wire.Posture{"n3": {Security: true, LegacyClusterAuth: true}}, silent: []string{"n2"}},
			class: "node_insecure", members: []string{"n3"},
		},
		"silent": {crew: crew{postures: map[string]wire.Posture{"n2": good}, silent: []string{"n4", "n3"}}, class: "unreachable", members: []string{"n3", "n4"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &site{o: Options{Members: tc.crew}}
			err := s.everyPosture(t.Context())
			if tc.class == "" {
				require.NoError(t, err)
				return
			}
			var p *wire.Problem
			require.ErrorAs(t, err, &p)
			require.Equal(t, wire.Precondition, p.Kind)
			require.Equal(t, tc.class, p.Fields["class"])
			require.Equal(t, tc.members, p.Fields["members"])
		})
	}
}
