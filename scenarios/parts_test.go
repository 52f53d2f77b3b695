package scenarios

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// three is good with three nodes a side, in the simulation.
var three = strings.Replace(good, "covers:", "backends: {only: [sim], reason: x}\nsource: {nodes: 3}\ntarget: {nodes: 3}\ncovers:", 1)

// covers: HAR-04
func TestMistakesOfFaultsInAClusterAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ fault, want string }{
		"no such node":    {"{at: 1s, for: 1s, between: [source-4, source], cut: true}", `faults[0].between[0]: "source-4" is no node`},
		"two sides":       {"{at: 1s, for: 1s, between: [source-1, target-1], cut: true}", `faults[0].between: nodes of two sides do not talk`},
		"target's way":    {"{at: 1s, for: 1s, between: [target-1, source], cut: true}", `faults[0].between: nodes of two sides do not talk`},
		"itself":          {"{at: 1s, for: 1s, between: [source-1, source-1], cut: true}", `faults[0].between: a node is not parted from itself`},
		"perhaps itself":  {"{at: 1s, for: 1s, between: [source leader, source-1], cut: true}", `faults[0].between: a node that is looked for may be the other one too`},
		"for good":        {"{at: 1s, between: [source-1, source], cut: true}", `faults[0].for: is missing: a cut heals`},
		"one party":       {"{at: 1s, for: 1s, between: [source-1], cut: true}", `faults[0].between: wants two`},
		"raft elsewhere":  {"{at: 1s, for: 1s, between: [source-1, target], carries: raft, cut: true}", `faults[0].carries: is for cuts between nodes of one side`},
		"flap":            {"{at: 1s, for: 5s, between: [source-1, source], cut: true, flap: {on: 1s, off: 1s}}", `faults[0].flap: is for the link`},
		"silent link":     {"{at: 1s, for: 1s, between: [source, target], silent: true, cut: true}", `faults[0].silent: is for a cut between nodes`},
		"one way kill":    {"{at: 1s, for: 1s, kill: source-1, one_way: true}", `faults[0].one_way: is for a cut between nodes`},
		"no such alias":   {"{at: 1s, for: 1s, kill: source follower}", `faults[0].kill: "source follower" is no node`},
		"no partition":    {"{at: 1s, for: 1s, kill: source owner of orders/3}", `faults[0].kill: source has no partition orders/3`},
		"no topic":        {"{at: 1s, for: 1s, pause: target owner of bills/0}", `faults[0].pause: target has no partition bills/0`},
		"alias for good":  {"{at: 1s, kill: source leader}", `faults[0].for: is missing: no start can name that node later`},
		"alias started":   {"{at: 1s, start: source leader}", `faults[0].start: start names its node`},
		"every alone":     {"{at: 1s, for: 1s, every: 2s, kill: source-1}", `faults[0]: every and times come together`},
		"every too short": {"{at: 1s, for: 2s, every: 2s, times: 2, kill: source-1}", `faults[0].every: each heals before it is done again`},
		"every for good":  {"{at: 1s, every: 2s, times: 2, kill: source-1}", `faults[0].every: is for faults with a for`},
		"too many":        {"{at: 1s, for: 1s, every: 3s, times: 4, kill: source-1}", `faults[0].times: the load ends at 10s`},
		"slow pause":      {"{at: 1s, for: 1s, slow: 1s, pause: source-1}", `faults[0].slow: is for kill, stop, start, restart, rolling and upgrade`},
		"unaudited stop":  {"{at: 1s, for: 1s, stop: source leader, unaudited: true}", `faults[0].unaudited: is for kill`},
		"unaudited there": {"{at: 1s, for: 1s, kill: target leader, unaudited: true}", `faults[0].unaudited: remote writes are made on the source`},
		"transfer whom":   {"{at: 1s, transfer: source-1}", `is unknown; allowed: source leader, target leader`},
		"transfer owner":  {"{at: 1s, transfer: source owner of orders/0}", `is unknown; allowed: source leader, target leader`},
		"toxic's kind":    {"{at: 1s, for: 1s, between: [source-1, source], toxic: {type: timeout, timeout: 1s}}", `faults[0].toxic.type: between nodes allowed: bandwidth, latency, slicer; what ends or holds connections is a cut`},
		"toxic's stream":  {"{at: 1s, for: 1s, between: [source-1, source], toxic: {type: latency, latency: 1s, stream: downstream}}", `faults[0].toxic.stream: allowed between nodes: upstream`},
		"toxic's way":     {"{at: 1s, for: 1s, between: [source-1, target], toxic: {type: latency, latency: 1s}}", `faults[0].between: the way of one node to the target takes no toxic`},
		"toxic's sides":   {"{at: 1s, for: 1s, between: [source-1, target-1], toxic: {type: latency, latency: 1s}}", `faults[0].between: nodes of two sides do not talk`},
		"silent toxic":    {"{at: 1s, for: 1s, between: [source-1, source], silent: true, toxic: {type: latency, latency: 1s}}", `faults[0].silent: is for a cut between nodes`},
		"flapping toxic":  {"{at: 1s, for: 5s, between: [source-1, source], toxic: {type: latency, latency: 1s}, flap: {on: 1s, off: 1s}}", `faults[0].flap: is for the link`},
		"endless toxic":   {"{at: 1s, between: [source-1, source], toxic: {type: latency, latency: 1s}}", `faults[0].for: is missing`},
		"no side":         {"{at: 1s, rolling: source-1}", `faults[0].rolling: "source-1" is unknown; allowed: source, target`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(three+"faults:\n  - "+c.fault+"\n"))
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "x.yaml:11:")
		})
	}
	_, err := Parse("x.yaml", []byte(good+"faults:\n  - {at: 1s, for: 1s, between: [source-1, target], cut: true}\n"))
	require.ErrorContains(t, err, "the way of a single node to the target can be cut in the simulation alone")
	_, err = Parse("x.yaml", []byte(good+"faults:\n  - {at: 1s, transfer: source leader}\n"))
	require.ErrorContains(t, err, "faults[0].transfer: a single node has nobody to hand its lead to")
	_, err = Parse("x.yaml", []byte(good+"faults:\n  - {at: 1s, for: 1s, kill: source-1, unaudited: true}\n"))
	require.ErrorContains(t, err, "faults[0].unaudited: a node can be killed between a commit and its audit line in the simulation alone")
}

// covers: HAR-04
func TestFaultsInAClusterGetNamesOfTheirOwn(t *testing.T) {
	s, err := Parse("x.yaml", []byte(three+`faults:
  - {at: 1s, for: 1s, every: 2s, times: 3, kill: source leader}
  - {at: 1s, for: 1s, between: [source-1, source], cut: true}
  - {at: 1s, for: 1s, between: [source-1, source-2], cut: true, one_way: true, silent: true, carries: raft}
  - {at: 1s, for: 1s, between: [target owner of orders/2, target], cut: true}
  - {at: 1s, for: 1s, between: [source-1, target], cut: true}
  - {at: 2s, restart: source-3}
  - {at: 2s, rolling: target, slow: 3s}
  - {at: 7s, for: 1s, kill: source leader, unaudited: true}
  - {at: 7s, every: 1500ms, times: 2, transfer: source leader}
  - {at: 8s, for: 1s, between: [source leader, source], carries: rpc, toxic: {type: latency, latency: 50ms}}
`))
	require.NoError(t, err)
	var names []string
	for _, f := range s.Faults {
		names = append(names, f.Name())
	}
	require.Equal(t, []string{
		"kill on source leader at 1s", "kill on source leader at 3s", "kill on source leader at 5s", "cut on source-1<>source at 1s",
		"cut on source-1>source-2 raft silent at 1s", "cut on target owner of orders/2<>target at 1s", "cut on source-1<>target at 1s",
		"restart on source-3 at 2s", "rolling on target at 2s", "kill on source leader at 7s", "transfer on source leader at 7s", "transfer on source leader at 8.5s",
		"latency on source leader>source rpc at 8s",
	}, names)
	require.Equal(t, defaultDown, s.Faults[7].For)
	require.Equal(t, "all", s.Faults[3].Carries)
	require.True(t, s.Faults[9].Unaudited)
	require.True(t, s.Faults[3].Parts())
	require.True(t, s.Faults[12].Paces())
	require.Equal(t, defaultDown, s.Faults[10].For)
	written, err := Marshal(s)
	require.NoError(t, err)
	again, err := Parse("x.yaml", written)
	require.NoError(t, err)
	require.Equal(t, s, again)
}

// covers: HAR-04
func TestMistakesOfCountedProducesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"{status: 503, on: target-1, is: \"== 0\"}":        `expect.produces[0].on: "target-1" is no node`,
		"{status: 5, is: \"== 0\"}":                        `expect.produces[0].status: wants a status`,
		"{status: 503, is: none}":                          `expect.produces[0].is: "none": wants a comparison`,
		"{status: 503, from: 5s, until: 5s, is: \"== 0\"}": `expect.produces[0].until: is not after from`,
		"{status: 503, outcome: refused, is: \"== 0\"}":    `expect.produces[0].outcome: unknown field`,
	} {
		_, err := Parse("x.yaml", []byte(three+"expect:\n  produces:\n    - "+text+"\n"))
		require.ErrorContains(t, err, want)
	}
}

func TestAlias(t *testing.T) {
	a, ok := Alias("target owner of orders.eu/12")
	require.True(t, ok)
	require.Equal(t, Aliased{Side: "target", Topic: "orders.eu", Partition: 12}, a)
	a, ok = Alias("source leader")
	require.True(t, ok)
	require.Equal(t, Aliased{Side: "source"}, a)
	for _, other := range []string{"source-1", "leader", "source owner", "fake leader", "source owner of orders"} {
		_, ok = Alias(other)
		require.False(t, ok, other)
	}
}
