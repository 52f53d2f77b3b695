package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// covers: HAR-04
func TestMistakesOfAMutedNodeAreNamed(t *testing.T) {
	for fault, want := range map[string]string{
		"{at: 1s, for: 1s, mute: source-4, says: nothing}":                `faults[0].mute: "source-4" is no node`,
		"{at: 1s, mute: source-1, says: nothing}":                         `faults[0].for: is missing: a muted node speaks again`,
		"{at: 1s, for: 1s, mute: source-1}":                               `faults[0].says: is missing; allowed: nothing, garbage, endless, relayed`,
		"{at: 1s, for: 1s, mute: source-1, says: relayed, carries: all}":  `faults[0].says: relayed is of the node RPC alone`,
		"{at: 1s, for: 1s, mute: source-1, says: lies}":                   `faults[0].says: "lies" is unknown`,
		"{at: 1s, for: 1s, pause: source-1, says: nothing}":               `faults[0].says: is for mute`,
		"{at: 1s, for: 1s, mute: source-1, says: nothing, one_way: true}": `faults[0].one_way: is for a cut between nodes`,
	} {
		_, err := Parse("x.yaml", []byte(three+"faults:\n  - "+fault+"\n"))
		require.ErrorContains(t, err, want)
	}
	s, err := Parse("x.yaml", []byte(three+"faults:\n  - {at: 1s, for: 1s, mute: source-1, says: garbage}\n"))
	require.NoError(t, err)
	require.Equal(t, "mute on source-1 at 1s", s.Faults[0].Name())
	require.Equal(t, "rpc", s.Faults[0].Carries)
	_, err = Parse("x.yaml", []byte(good+"faults:\n  - {at: 1s, for: 1s, mute: source-1, says: garbage}\n"))
	require.ErrorContains(t, err, "simulation alone")
	require.ErrorContains(t, err, "nobody dials a single node")
}

// covers: HAR-04
func TestMistakesOfReleasesAreNamed(t *testing.T) {
	mixed := strings.Replace(three, "source: {nodes: 3}", "source: {nodes: 3, older: [2]}", 1)
	mixed = strings.Replace(mixed, "child: orders-to-b}", "child: orders-to-b, attach: after}", 1) + "steps: [{at: 3s, action: create_remote}]\n"
	whole := mixed + "faults: [{at: 2s, upgrade: source-2}]\n"
	s, err := Parse("x.yaml", []byte(whole))
	require.NoError(t, err)
	require.Equal(t, []int{2}, s.Source.Older)
	require.Equal(t, "upgrade on source-2 at 2s", s.Faults[0].Name())
	require.Equal(t, defaultDown, s.Faults[0].For)
	require.True(t, s.Faults[0].Kills())
	written, err := Marshal(s)
	require.NoError(t, err)
	again, err := Parse("x.yaml", written)
	require.NoError(t, err)
	require.Equal(t, s, again)
	for name, c := range map[string]struct{ from, to, want string }{
		"the node that is asked": {"older: [2]", "older: [1]", `source.older[0]: allowed: numbers of nodes, 2 to 3`},
		"no such node":           {"older: [2]", "older: [4]", `source.older[0]: allowed: numbers of nodes, 2 to 3`},
		"twice":                  {"older: [2]", "older: [2, 2]", `source.older[1]: is there twice`},
		"a link before":          {"attach: after", "attach: before", `links[0].attach: no link can be made while a node`},
		"no remote":              {"create_remote", "read_back, link: orders-to-b", `source.older: no step makes the remote b`},
		"another node":           {"upgrade: source-2", "upgrade: source-3", `faults[0].upgrade: "source-3" is no node of an older release`},
		"again":                  {"upgrade: source-2}", "upgrade: source-2}, {at: 5s, upgrade: source-2}", `faults[1].upgrade: source-2 is upgraded already`},
		"a fake":                 {"target: {nodes: 3}", "target: {older: [1], fake: {steps: [{answer: '409'}]}}", `target.older: a fake is of no release`},
		"words of a success":     {"create_remote}", "create_remote, says: well}", `steps[0].says: is for a refusal`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, whole, c.from)
			_, err := Parse("x.yaml", []byte(strings.Replace(whole, c.from, c.to, 1)))
			require.ErrorContains(t, err, c.want)
		})
	}
}
