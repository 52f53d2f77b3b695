package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	anyTime  = rapid.SampledFrom([]string{"0s", "0ms", "1ms", "1500us", "3s", "2.5s", "1m30s", "1h"})
	anySize  = rapid.SampledFrom([]string{"0B", "1B", "200B", "1023B", "1KiB", "3KiB", "1MiB", "1025KiB"})
	anyShift = rapid.SampledFrom([]string{"+25h", "-2h", "+400d", "-1m30s", "+1ms"})
	// What another reader of YAML takes for something else than a text.
	anyText = rapid.SampledFrom([]string{"yes", "null", "~", "1e3", "0x10", "a: b", "a #b", "{a}", "[a]", "'a'", `a"b`, "- a", "&a", "*a", "!a", "%a", "@a", "0s", "1", "x", "äö", "a\\nb"})
)

// anyToxic is a toxic with every attribute that it needs, 0 where the language takes it, and some that it may have.
func anyToxic(t *rapid.T) string {
	kinds := []string{"latency", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data"}
	kind := rapid.SampledFrom(kinds).Draw(t, "toxic")
	parts := []string{"type: " + kind}
	fields := toxicFields[kind]
	for _, name := range append(append([]string{}, fields.need...), fields.may...) {
		switch name {
		case "rate":
			parts = append(parts, "rate: 64KiB/s")
		case "average_size", "bytes":
			parts = append(parts, name+": "+anySize.Draw(t, name))
		default:
			parts = append(parts, name+": "+anyTime.Draw(t, name))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func anyFault(t *rapid.T, at int) string {
	head := fmt.Sprintf("{at: %ds, for: 4s, ", at)
	switch rapid.IntRange(0, 4).Draw(t, "fault") {
	case 0:
		return head + "between: [source, target], toxic: " + anyToxic(t) + "}"
	case 1:
		return head + "between: [source, target], cut: true, flap: {on: 300ms, off: 1s}}"
	case 2:
		return head + "clock: {node: source-1, step: " + anyShift.Draw(t, "step") + "}}"
	case 3:
		return head + "disk: {node: target-1, fault: slow_fsync, delay: 20ms}}"
	}
	return head + "kill: target-1, slow: " + anyTime.Draw(t, "slow") + "}"
}

func anyScenario(t *rapid.T) string {
	var b strings.Builder
	quoted := "'" + strings.ReplaceAll(anyText.Draw(t, "name"), "'", "''") + "'"
	json := rapid.IntRange(0, 100).Draw(t, "json")
	fmt.Fprintf(&b, "name: %s\ncovers: [HAR-05]\ntopics: {orders: }\nlinks: [{parent: orders, child: orders-to-b, delay: %s}]\n", quoted, anyTime.Draw(t, "delay"))
	fmt.Fprintf(&b, "backends: {only: [sim], reason: %s}\n", quoted)
	fmt.Fprintf(&b, "load: [{topic: orders, at: %s, rate: 100/s, for: 90s, payload: {json: %d%%, binary: %d%%, size: 1B..%s}}]\n",
		anyTime.Draw(t, "at"), json, 100-json, rapid.SampledFrom([]string{"1B", "64B", "1KiB", "32KiB"}).Draw(t, "size"))
	b.WriteString("faults:\n")
	for i := range rapid.IntRange(1, 5).Draw(t, "faults") {
		fmt.Fprintf(&b, "  - %s\n", anyFault(t, 5+10*i))
	}
	fmt.Fprintf(&b, "steps: [{at: 70s, action: skip, link: orders-to-b, partition: %d, offset: %d}]\n",
		rapid.IntRange(0, 2).Draw(t, "partition"), rapid.IntRange(0, 2).Draw(t, "offset"))
	fmt.Fprintf(&b, "expect: {drained: 60s, metrics: {narad_x_total: \"%s 0\"}}\n", rapid.SampledFrom([]string{"==", ">", ">="}).Draw(t, "is"))
	return b.String()
}

// What Marshal writes is the scenario that Parse read, whatever stands in it.
//
// covers: HAR-04
func TestWhatIsWrittenIsWhatWasRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyScenario(t)
		read, err := Parse("x.yaml", []byte(text))
		require.NoError(t, err, text)
		written, err := Marshal(read)
		require.NoError(t, err)
		again, err := Parse("x.yaml", written)
		require.NoError(t, err, "%s\nwas written as\n%s", text, written)
		require.Equal(t, read, again, "%s\nwas written as\n%s", text, written)
	})
}
