package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/config"
	"narad.example/narad/wire"
)

// handles counts the open segments of a topic's partitions.
func (m *machine) handles(topic wire.Topic) (n int) {
	for p := range 3 {
		n += m.disk.Handles(fmt.Sprintf("/node-1/topics/%s/%d/%020d.log", topic.ID, p, 0))
	}
	return n
}

// A partition that nobody uses has no open file after storage.idle_log_eviction_ms, which no upkeep of the node's own delays, and takes and
// gives records again. The ingress WAL has the room that storage.ingress_wal_prealloc reserves.
func TestIdlePartitionsAndAReservedWAL(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.config.Storage.IdleLogEvictionMS = 70_000
		m.config.Storage.IngressWALPrealloc = true
		m.start()
		topic := m.create("logs")
		for i := range 12 {
			m.produce("logs", fmt.Sprint("k", i), "payload")
		}
		b.eventually("all is committed", func() bool { return m.count("logs") == 12 })
		require.Equal(t, m.config.Storage.SegmentBytes, m.disk.Reserved(fmt.Sprintf("/node-1/ingress/%020d.log", 0)))
		time.Sleep(time.Minute)
		require.Equal(t, 3, m.handles(topic))
		time.Sleep(time.Minute)
		require.Zero(t, m.handles(topic))
		m.produce("logs", "k0", "payload")
		b.eventually("a partition that rested takes a record", func() bool { return m.count("logs") == 13 })
		total := 0
		for _, p := range m.stored("logs") {
			total += len(p)
		}
		require.Equal(t, 13, total)
		m.stop()
	})
}

// A node that compresses what it stores answers, copies and recovers as one that does not, and a changed setting reads what is there.
//
// covers: BRK-04
func TestANodeThatCompressesItsPartitions(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.config.Storage.Codec = config.CodecZstd
		m.start()
		m.create("logs")
		var want []string
		produce := func() {
			for range 10 {
				payload := fmt.Sprintf(`{"n":%d,"text":%q}`, len(want), strings.Repeat("all is well ", 500))
				m.produce("logs", "k", payload)
				want = append(want, payload)
			}
			b.eventually("all is committed", func() bool { return m.count("logs") == len(want) })
		}
		have := func() (all []string) {
			for _, p := range m.stored("logs") {
				all = append(all, p...)
			}
			return all
		}
		produce()
		d, err := m.client().Topic(t.Context(), "logs", nil)
		require.NoError(t, err)
		bytes := int64(0)
		for _, s := range d.PartitionStats {
			bytes += s.SizeBytes
		}
		require.Less(t, bytes, int64(len(want)*len(want[0])/10))
		time.Sleep(10 * time.Second) // until the ingress knows on the disk that all is committed
		m.kill(true)
		m.config.Storage.Codec = config.CodecNone
		m.start()
		require.Equal(t, want, have())
		produce()
		m.stop()
		m.config.Storage.Codec, m.config.Storage.CompressionLevel = config.CodecZstd, 1
		m.start()
		produce()
		require.Equal(t, want, have())
		m.stop()
	})
}
