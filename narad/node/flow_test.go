package node_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// consume leases and acks up to n records, and returns their payloads.
func (m *machine) consume(topic string, n int) (out []string) {
	m.b.t.Helper()
	c := m.client()
	for len(out) < n {
		ms, err := c.ConsumeBatch(m.b.t.Context(), topic, min(100, n-len(out)), client.ConsumeOptions{Wait: 2 * time.Second})
		require.NoError(m.b.t, err)
		if len(ms) == 0 {
			return out
		}
		for i := range ms {
			body, err := client.Payload(&ms[i], false)
			require.NoError(m.b.t, err)
			out = append(out, string(body))
			require.NoError(m.b.t, c.Settle(m.b.t.Context(), topic, ms[i].ReceiptHandle, client.Ack))
		}
	}
	return out
}

// What was acked stays acked over a stop, and over a crash once a second has passed; a replay still reads it.
//
// covers: BRK-05
func TestAcksOutliveTheNode(t *testing.T) {
	for name, end := range map[string]func(*machine){
		"stop": (*machine).stop,
		"kill": func(m *machine) { time.Sleep(1200 * time.Millisecond); m.kill(false) },
		"power loss": func(m *machine) {
			time.Sleep(1200 * time.Millisecond)
			m.kill(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				m := b.machine("node-1")
				m.start()
				m.create("orders")
				for i := range 30 {
					m.produce("orders", fmt.Sprint(i%7), id("r", i))
				}
				first := m.consume("orders", 12)
				require.Len(t, first, 12)
				end(m)
				m.start()
				rest := m.consume("orders", 30)
				all := append(slices.Clone(first), rest...)
				slices.Sort(all)
				require.Len(t, slices.Compact(all), 30, "every record once")
				require.Len(t, rest, 18)
				replayed := slices.Concat(m.stored("orders")...)
				require.Len(t, replayed, 30)
				msg, err := m.client().Replay(t.Context(), "orders", 0, 1_000_000)
				require.NoError(t, err)
				require.Nil(t, msg)
				m.stop()
			})
		})
	}
}

// No timer stands between the create of a topic and its first consume.
func TestATopicTakesRecordsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.disk.SetSyncDelay(0)
		m.start()
		began := time.Now()
		m.create("orders")
		m.produce("orders", "k", "first")
		msg, err := m.client().Consume(t.Context(), "orders", client.ConsumeOptions{Wait: 5 * time.Second})
		require.NoError(t, err)
		require.NotNil(t, msg)
		require.Zero(t, time.Since(began), "in virtual time only a timer takes any")
		m.stop()
	})
}

// A local child gets every record in key order, a delay child gets it once it is due, through the same engine, over a restart.
//
// covers: BRK-10
func TestLocalAndDelayChildren(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		for _, name := range []string{"orders", "copy", "late"} {
			m.create(name)
		}
		c := m.client()
		_, err := c.AttachChild(t.Context(), "orders", wire.AttachChild{Child: "copy"})
		require.NoError(t, err)
		_, err = c.AttachChild(t.Context(), "orders", wire.AttachChild{Child: "late", DelayMS: 60_000})
		require.NoError(t, err)
		began := time.Now()
		for i := range 40 {
			m.produce("orders", fmt.Sprint("k", i%4), id(fmt.Sprint("k", i%4), i))
		}
		b.eventually("the copy", func() bool { return m.count("copy") == 40 })
		require.Less(t, time.Since(began), 10*time.Second)
		require.Zero(t, m.count("late"))
		m.kill(true)
		m.start()
		b.eventually("the late copy", func() bool { return m.count("late") >= 40 })
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		for _, topic := range []string{"copy", "late"} {
			var producers []*producer
			for k := range 4 {
				p := &producer{key: fmt.Sprint("k", k), acked: map[int]bool{}}
				for i := k; i < 40; i += 4 {
					p.acked[i] = true
				}
				producers = append(producers, p)
			}
			require.NoError(t, checkStored(m.stored(topic), producers), topic)
		}
		err = c.Produce(t.Context(), "late", []byte("x"), client.ProduceOptions{})
		require.ErrorContains(t, err, "409")
		m.stop()
	})
}

// A topic of the same name is another topic: it begins empty, and the old one's files go.
//
// covers: BRK-09
func TestARecreatedTopicServesNoOldData(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				m := b.machine("node-1")
				m.start()
				old := m.create("orders")
				m.create("copy")
				_, err := m.client().AttachChild(t.Context(), "orders", wire.AttachChild{Child: "copy"})
				require.NoError(t, err)
				for i := range 20 {
					m.produce("orders", fmt.Sprint(i), id("old", i))
				}
				require.NotEmpty(t, m.consume("orders", 5))
				require.NoError(t, m.client().DeleteTopic(t.Context(), "orders", false))
				if restart {
					m.kill(true)
					m.start()
				}
				fresh := m.create("orders")
				require.NotEqual(t, old.ID, fresh.ID)
				msg, err := m.client().Consume(t.Context(), "orders", client.ConsumeOptions{Wait: 3 * time.Second})
				require.NoError(t, err)
				require.Nil(t, msg)
				require.Equal(t, make([][]string, 3), m.stored("orders"))
				b.eventually("the old files go", func() bool {
					dirs, err := m.disk.ReadDir("/node-1/topics")
					require.NoError(t, err)
					return !slices.ContainsFunc(dirs, func(d fs.DirEntry) bool { return d.Name() == old.ID })
				})
				m.produce("orders", "k", "new")
				require.Equal(t, []string{"new"}, m.consume("orders", 1))
				m.stop()
				require.NotContains(t, m.log.String(), `"level":"ERROR"`)
			})
		})
	}
}

// A full disk refuses what it cannot keep, ends nothing and damages nothing; with room again everything goes on, in the same
// process, and what was acknowledged before and after is there.
//
// covers: BRK-01, BRK-04
func TestAFullDiskHeals(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		m.create("orders")
		var acked []string
		put := func(i int) error {
			err := m.client().Produce(t.Context(), "orders", []byte(id("r", i)+strings.Repeat("x", 1000)), client.ProduceOptions{Key: "k"})
			if err == nil {
				acked = append(acked, id("r", i))
			}
			return err
		}
		for i := range 20 {
			require.NoError(t, put(i))
		}
		m.disk.SetCapacity(m.disk.Used() + 30_000)
		var refused error
		for i := 20; refused == nil && i < 200; i++ {
			refused = put(i)
		}
		require.ErrorContains(t, refused, "503")
		time.Sleep(5 * time.Second)
		status, _ := m.get("/readyz", false)
		require.Equal(t, http.StatusOK, status, "consumers go on")
		m.disk.SetCapacity(0)
		for i := 200; i < 220; i++ {
			require.NoError(t, put(i))
		}
		b.eventually("everything is dispatched", func() bool { return m.count("orders") >= len(acked) })
		m.kill(true)
		m.start()
		got := map[string]bool{}
		for _, payload := range slices.Concat(m.stored("orders")...) {
			got[payload[:8]] = true
		}
		for _, r := range acked {
			require.True(t, got[r], r)
		}
		m.stop()
	})
}

// Retention runs by itself: what is older than the topic's retention goes within minutes, consumers skip it and it is counted.
//
// covers: BRK-05, BRK-13
func TestRetentionRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.start()
		hour := time.Hour.Milliseconds()
		for name, keep := range map[string]int64{"short": hour, "forever": 0} {
			_, err := m.client().CreateTopic(t.Context(), wire.CreateTopic{Name: name, RetentionMS: &keep})
			require.NoError(t, err)
			for i := range 10 {
				m.produce(name, "k", id("old", i))
			}
		}
		require.Len(t, m.consume("short", 1), 1)
		time.Sleep(time.Hour + 3*time.Minute)
		require.Equal(t, 10, m.count("forever"))
		m.produce("short", "k", "new")
		require.Equal(t, []string{"new"}, m.consume("short", 10))
		require.Len(t, m.consume("forever", 20), 10)
		_, page := m.get("/metrics", true)
		require.Equal(t, "9", metric(page, "narad_consumer_dropped_messages"))
		m.stop()
	})
}
