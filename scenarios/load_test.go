package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const good = `
name: x
covers: [HAR-05]
topics: {orders: }
links: [{parent: orders, child: orders-to-b}]
load: [{topic: orders, rate: 100/s, for: 10s}]
`

func TestDefaults(t *testing.T) {
	s, err := Parse("x.yaml", []byte(good))
	require.NoError(t, err)
	require.Equal(t, 1, s.Source.Nodes)
	require.Equal(t, 3, s.Topics["orders"].Partitions)
	require.Equal(t, Link{Parent: "orders", Child: "orders-to-b", Remote: "b", Topic: "orders", Lanes: 4, From: "attach", Attach: "before"}, s.Links[0])
	require.Equal(t, "load-1", s.Load[0].Name)
	require.Equal(t, defaultDrain, s.Expect.Drained)
}

// covers: HAR-04
func TestEveryFileOfTheCatalogueLoads(t *testing.T) {
	files, err := Find([]string{"."})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 10)
	names := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(data), "# "), "%s opens with what it does and what breaks it", f)
		require.Contains(t, string(data), "# What breaks it: ", f)
		all, err := LoadAll(f)
		require.NoError(t, err)
		for i, s := range all.Scenarios {
			require.Empty(t, names[s.Name], "%s and %s have one name", f, names[s.Name])
			names[s.Name] = f
			if i%50 > 0 {
				continue // a matrix's cells are much alike
			}

			written, err := Marshal(s)
			require.NoError(t, err)
			again, err := Parse(f, written)
			require.NoError(t, err, "as written with its defaults:\n%s", written)
			require.Equal(t, s, again)
		}
	}
}

// covers: HAR-04
func TestMistakesAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown field":      {"name: x", "name: x\ncolour: red", `x.yaml:3:1: colour: unknown field; allowed: name, covers, backends`},
		"nested field":       {"rate: 100/s", "rte: 100/s", `x.yaml:6:24: load[0].rte: unknown field; allowed: name, topic, at, rate`},
		"no unit":            {"for: 10s", "for: 10", `x.yaml:6:42: load[0].for: "10": wants a time with its unit, such as 250ms`},
		"no rate":            {"100/s", "100", `load[0].rate: "100": wants records per second, such as 2000/s`},
		"requirement":        {"HAR-05", "HAR-5", `x.yaml:3:10: covers[0]: "HAR-5" is no requirement ID; it is written as in SND-04`},
		"row of no group":    {"HAR-05", "HRA-05", `covers[0]: there is no group HRA; allowed: CUR, LST`},
		"row of no number":   {"HAR-05", "HAR-17", `covers[0]: there is no row HAR-17; allowed: HAR-01 to HAR-16`},
		"unknown topic":      {"topic: orders,", "topic: odres,", `x.yaml:6:9: load[0].topic: "odres" is no topic of this scenario; allowed: orders`},
		"twice":              {"name: x", "name: x\nname: y", `x.yaml:3:1: name: is given twice`},
		"anchor":             {"covers: [HAR-05]", "covers: &a [HAR-05]", `covers: anchors, aliases and tags are not part of the language`},
		"two ends":           {"for: 10s", "for: 10s, count: 5", `load[0]: for and count: one of them ends the load`},
		"two paces":          {"for: 10s", "for: 10s, every: 5s", `load[0]: rate and every: one of them says how much`},
		"no pace":            {"rate: 100/s, ", "", `load[0]: for wants a rate, or every`},
		"not YAML":           {"covers: [HAR-05]", "covers: [HAR-05", `is not YAML`},
		"a list":             {"covers: [HAR-05]", "covers: HAR-05", `x.yaml:3:9: covers: wants a list`},
		"backend":            {"name: x", "name: x\nbackends: {only: [vm], reason: y}", `backends.only[0]: "vm" is unknown; allowed: container, process, sim`},
		"backend, no reason": {"name: x", "name: x\nbackends: {only: [sim]}", `backends.reason: is missing`},
		"state":              {"name: x", "name: x\nexpect: {states: {orders-to-b: [walking]}}", `expect.states.orders-to-b[0]: "walking" is no link state of this scenario; allowed: remote_missing`},
		"metric":             {"name: x", "name: x\nexpect: {metrics: {narad_x: many}}", `expect.metrics.narad_x: "many": wants a comparison such as "> 0"`},
		"judge":              {"name: x", "name: x\nrelax: [{judge: gaps, reason: y}]", `relax[0].judge: "gaps" is no judge of this scenario; allowed: no gap`},
		"answer":             {"name: x", "name: x\ntarget: {fake: {steps: [{answer: 503-ish}]}}", `target.fake.steps[0].answer: "503-ish" is no answer of this scenario; allowed: 101, 200, 202`},
		"payload sum":        {"for: 10s", "for: 10s, payload: {json: 50%}", `load[0].payload: json, text and binary add up to 50%, they want 100%`},
		"reversed sizes":     {"for: 10s", "for: 10s, payload: {size: 4KiB..1KiB}", `load[0].payload.size: "4KiB..1KiB": wants a size or a range from small to large`},
		"step":               {"name: x", "name: x\nsteps: [{at: 1s, action: detach, link: orders-to-c}]", `steps[0].link: "orders-to-c" is no child of this scenario; allowed: orders-to-b`},
		"step's field":       {"name: x", "name: x\nsteps: [{at: 1s, action: pause, link: orders-to-b, force: true}]", `steps[0].force: pause does not take it; allowed: link, reason`},
		"step's subject":     {"name: x", "name: x\nsteps: [{at: 1s, action: set_limits, link: orders-to-b, limits: {max_in_flight: 2}}]", `steps[0].link: set_limits does not take it; allowed: remote, limits`},
		"step's action":      {"name: x", "name: x\nsteps: [{at: 1s, action: stop}]", `steps[0].action: "stop" is unknown; allowed: attach, detach, pause`},
		"no action":          {"name: x", "name: x\nsteps: [{at: 1s}]", `steps[0].action: is missing; allowed: attach, create_remote, decommission, delete_remote, detach, join, look, move, pause, read_back, recreate_parent, reencrypt`},
		"half a skip":        {"name: x", "name: x\nsteps: [{at: 1s, action: skip, link: orders-to-b, offset: 3}]", `steps[0]: partition and offset come together`},
		"no limits":          {"name: x", "name: x\nsteps: [{at: 1s, action: set_limits}]", `steps[0].limits: is missing: set_limits names a limit at least`},
		"step's limit":       {"name: x", "name: x\nsteps: [{at: 1s, action: set_limits, limits: {max_in_flight: 257}}]", `steps[0].limits.max_in_flight: allowed: 1 to 256`},
		"reason":             {"name: x", "name: x\nsteps: [{at: 1s, action: pause, link: orders-to-b, reason: caf\u00e9}]", `steps[0].reason: wants at most 256 printable bytes`},
		"expect":             {"name: x", "name: x\nsteps: [{at: 1s, action: pause, link: orders-to-b, expect: 20}]", `steps[0].expect: wants a status, 100 to 599`},
		"users of a fake":    {"name: x", "name: x\ntarget: {fake: {steps: [{answer: '409'}]}}\nsteps: [{at: 1s, action: rotate_password}]", `steps[0].action: a fake has no users`},
		"how often":          {"name: x", "name: x\ntarget: {fake: {steps: [{answer: '409', times: 2, always: true}]}}", `target.fake.steps[0]: times and always: one of them`},
		"look":               {"name: x", "name: x\nsteps: [{at: 1s, action: look, link: orders-to-b, shows: {mood: good}}]", `steps[0].shows.mood: is no member of the listing and no metric`},
		"look's state":       {"name: x", "name: x\nsteps: [{at: 1s, action: look, link: orders-to-b, shows: {state: walking}}]", `steps[0].shows.state: "walking" is no link state`},
		"answer's member":    {"name: x", "name: x\nsteps: [{at: 1s, action: test, link: orders-to-b, shows: {state: running}}]", `steps[0].shows.state: is no member of the answer to test; allowed: class, result`},
		"answer's word":      {"name: x", "name: x\nsteps: [{at: 1s, action: reencrypt, remote: b, shows: {password: new}}]", `steps[0].shows.password: "new" is none; allowed: reencrypted, already_current, key_unknown, open_failed`},
		"what becomes of it": {"name: x", "name: x\nsteps: [{at: 1s, action: target_topic, link: orders-to-b, to: removed}]", `steps[0].to: wants one of these; allowed: deleted, created`},
		"count of lines":     {"name: x", "name: x\nexpect: {logs: [{message: m, is: many}]}", `expect.logs[0].is: "many": wants a comparison`},
		"count of requests":  {"name: x", "name: x\nexpect: {requests: [{route: chunk, from: 5s, until: 5s, is: '== 1'}]}", `expect.requests[0].until: is not after from`},
		"limit":              {"name: x", "name: x\nremotes: {b: {limits: {request_timeout_ms: 50}}}", `remotes.b.limits.request_timeout_ms: allowed: 5000 to 120000`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, good, c.from)
			_, err := Parse("x.yaml", []byte(strings.Replace(good, c.from, c.to, 1)))
			require.Error(t, err)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

// covers: HAR-04
func TestFaultMistakesAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ fault, want string }{
		"toxic":           {"{at: 1s, for: 1s, between: [source, target], toxic: {type: resets}}", `faults[0].toxic.type: "resets" is unknown; allowed: latency, bandwidth`},
		"attribute":       {"{at: 1s, for: 1s, between: [source, target], toxic: {type: latency, rate: 1KiB/s}}", `faults[0].toxic.rate: latency does not take it; allowed: type, stream, latency`},
		"needed":          {"{at: 1s, for: 1s, between: [source, target], toxic: {type: latency}}", `faults[0].toxic.latency: is missing: latency wants it`},
		"toxicity":        {"{at: 1s, for: 1s, between: [source, target], toxic: {type: reset_peer, toxicity: 50%}}", `faults[0].toxic.toxicity: unknown field`},
		"where":           {"{at: 1s, for: 1s, between: [target, source], cut: true}", `faults[0].between: allowed: [source, target]`},
		"endless":         {"{at: 1s, between: [source, target], cut: true}", `faults[0].for: is missing: a fault on the link heals`},
		"target":          {"{at: 1s, kill: source-2}", `faults[0].kill: "source-2" is no node of this scenario; allowed: source-1, target-1`},
		"nothing":         {"{at: 1s}", `faults[0]: does nothing; wants one of clock, config, cut, disk, dns, kill, mute`},
		"two":             {"{at: 1s, kill: source-1, cut: true}", `faults[0]: does several things (cut, kill)`},
		"late":            {"{at: 11s, kill: source-1}", `faults[0].at: the load ends at 10s: a fault after it proves nothing`},
		"start":           {"{at: 1s, start: source-1}", `faults[0].start: source-1 is not down then`},
		"flap":            {"{at: 1s, for: 1s, between: [source, target], cut: true, flap: {on: 1s, off: 1s}}", `faults[0].flap: on and off together are longer than the fault lasts`},
		"negative":        {"{at: -1s, kill: source-1}", `faults[0].at: "-1s": wants a time with its unit`},
		"disk elsewhere":  {"{at: 1s, for: 1s, disk: {node: source-1, fault: full}}", `faults[0].disk: a disk can be broken in the simulation alone: say backends`},
		"disk's files":    {"{at: 1s, for: 1s, disk: {node: source-1, fault: torn, files: wal}}", `faults[0].disk.files: torn takes all`},
		"disk's delay":    {"{at: 1s, for: 1s, disk: {node: source-1, fault: slow_fsync}}", `faults[0].disk.delay: slow_fsync wants it`},
		"disk's fault":    {"{at: 1s, for: 1s, disk: {node: source-1}}", `faults[0].disk.fault: is missing; allowed: full`},
		"disk's node":     {"{at: 1s, for: 1s, disk: {node: source-3, fault: full}}", `faults[0].disk.node: "source-3" is no node`},
		"disk for good":   {"{at: 1s, disk: {node: source-1, fault: full}}", `faults[0].for: is missing: a disk heals`},
		"rotten cursors":  {"{at: 1s, for: 1s, disk: {node: source-1, fault: bit_flip, files: cursors}}", `faults[0].disk: source-1 runs then`},
		"disk's flap":     {"{at: 1s, for: 5s, disk: {node: source-1, fault: full}, flap: {on: 1s, off: 1s}}", `faults[0].flap: is for toxic, cut, and the disk's power_loss and torn`},
		"clock elsewhere": {"{at: 1s, for: 1s, clock: {node: source-1, step: +2h}}", `faults[0].clock: a clock can be broken in the simulation alone`},
		"clock's step":    {"{at: 1s, for: 1s, clock: {node: source-1, step: 2h}}", `faults[0].clock.step: "2h": wants a sign and a time with its unit`},
		"clock that goes": {"{at: 1s, for: 1s, clock: {node: source-1}}", `faults[0].clock: wants a step or a drift`},
		"clock for good":  {"{at: 1s, clock: {node: source-1, drift: +1ms}}", `faults[0].for: is missing: a clock is set right again`},
		"tls's face":      {"{at: 1s, for: 1s, between: [source, target], tls: sad}", `faults[0].tls: "sad" is unknown; allowed: expired`},
		"tls nowhere":     {"{at: 1s, for: 1s, tls: expired}", `faults[0].between: allowed: [source, target]`},
		"dns elsewhere":   {"{at: 1s, for: 1s, between: [source, target], dns: [10.0.0.1]}", `faults[0].dns: a name can be broken in the simulation alone`},
		"dns words":       {"{at: 1s, for: 1s, between: [source, target], dns: [nowhere]}", `faults[0].dns[0]: "nowhere" is no address and none of truth`},
		"config of none":  {"{at: 1s, for: 1s, config: {node: source-1}}", `faults[0].config.set: is missing`},
		"config for good": {"{at: 1s, config: {node: source-1, set: {remotes: {allowed_ports: [1]}}}}", `faults[0].for: is missing: the node gets`},
		"between a start": {"{at: 1s, kill: source-1, between: [source, target]}", `faults[0].between: is for cut, dns, tls and toxic`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("x.yaml", []byte(good+"faults:\n  - "+c.fault+"\n"))
			require.Error(t, err)
			require.Contains(t, err.Error(), c.want)
			require.Contains(t, err.Error(), "x.yaml:8:")
		})
	}
}

func TestAllMistakesAtOnceInOrder(t *testing.T) {
	_, err := Parse("x.yaml", []byte("name: ''\ncovers: [A]\ntopics: {orders: {partitions: 2}}\nload: [{topic: x, for: 5}]\nlinks: []\n"))
	var ps Problems
	require.ErrorAs(t, err, &ps)
	require.Len(t, ps, 6, err.Error())
	for i := range ps[1:] {
		require.LessOrEqual(t, ps[i].Line, ps[i+1].Line)
	}
}

// covers: HAR-04
func TestStepsGetTheirDefaults(t *testing.T) {
	s, err := Parse("x.yaml", []byte(good+`steps:
  - {at: 1s, action: pause, link: orders-to-b, reason: why not}
  - {at: 2s, action: resume, link: orders-to-b, accept_target: true, expect: 409}
  - {at: 3s, action: skip, link: orders-to-b}
  - {at: 4s, action: skip, link: orders-to-b, partition: 0, offset: 0, expect: 409}
  - {at: 5s, action: set_limits, limits: {max_in_flight: 2}}
  - {at: 6s, action: rotate_password}
`))
	require.NoError(t, err)
	require.Equal(t, []int{200, 409, 200, 409, 200, 200}, []int{
		s.Steps[0].Expect, s.Steps[1].Expect, s.Steps[2].Expect, s.Steps[3].Expect, s.Steps[4].Expect, s.Steps[5].Expect,
	})
	require.Nil(t, s.Steps[2].Offset)
	require.Zero(t, *s.Steps[3].Offset)
	require.Equal(t, "b", s.Steps[4].Remote)
	require.Equal(t, 2, s.Steps[4].Limits.MaxInFlight)
	require.Equal(t, "b", s.Steps[5].Remote)
}

func TestFind(t *testing.T) {
	files, err := Find([]string{"link", "link/slow.yaml"})
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join("link", "cut.yaml"), filepath.Join("link", "paused.yaml"), filepath.Join("link", "resets.yaml"), filepath.Join("link", "slow.yaml")}, files)
	_, err = Find([]string{t.TempDir()})
	require.ErrorContains(t, err, "no *.yaml below")
	require.Len(t, Rows(), 178)
}

func TestAttributesAreInToxiproxysUnits(t *testing.T) {
	slicer := Toxic{Type: "slicer", AverageSize: 64, Delay: Duration(2e6)}
	require.Equal(t, map[string]int64{"average_size": 64, "delay": 2000}, slicer.Attributes())
	closing := Toxic{Type: "slow_close", Delay: Duration(2e9)}
	require.Equal(t, map[string]int64{"delay": 2000}, closing.Attributes())
	narrow := Toxic{Type: "bandwidth", Rate: 64 << 10}
	require.Equal(t, map[string]int64{"rate": 64}, narrow.Attributes())
}
