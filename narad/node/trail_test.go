package node_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/wire"
)

// lastWord holds a machine's next remote write between its commit and its audit line, until that machine is killed.
type lastWord struct {
	mu      sync.Mutex // guards what follows
	machine string
	reached chan string // gets the request's ID
	gone    chan struct{}
}

// arm has the next write that a machine leads stop.
func (l *lastWord) arm(m *machine) (reached <-chan string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machine, l.reached, l.gone = m.name, make(chan string, 1), make(chan struct{})
	return l.reached
}

func (l *lastWord) at(machine, request string) {
	l.mu.Lock()
	if machine != l.machine {
		l.mu.Unlock()
		return
	}
	l.machine = ""
	reached, gone := l.reached, l.gone
	l.mu.Unlock()
	reached <- request
	<-gone
}

// letGo lets a write go on in a machine that is dying; it says nothing any more.
func (l *lastWord) letGo() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.machine = ""
	if l.gone != nil {
		close(l.gone)
		l.gone = nil
	}
}

// leaderLines are a machine's audit lines without a status: those that it wrote as leader.
func (m *machine) leaderLines(request string) (lines []map[string]any) {
	for _, l := range m.log.with("audit") {
		if _, ingress := l["status"]; !ingress && (request == "" || l["request_id"] == request) {
			lines = append(lines, l)
		}
	}
	return lines
}

// replayed are the requests whose leader lines stand in the log of any machine as replayed ones, with how often.
func replayed(all []*machine) map[string]int {
	out := map[string]int{}
	for _, m := range all {
		for _, l := range m.leaderLines("") {
			if l["replayed"] == true {
				out[l["request_id"].(string)]++
			}
		}
	}
	return out
}

// leads waits until somebody leads.
func (b *bubble) leads(all []*machine) (m *machine) {
	b.t.Helper()
	b.eventually("somebody leads", func() bool { m = leader(all); return m != nil })
	return m
}

// A leader that dies between the commit of a write and its audit line leaves the line to the next one, which writes it once, marked replayed;
// what later writes have confirmed is not repeated by any leader after that, nor by the one that comes back.
//
// covers: WRT-11, WRT-01, CRD-13
func TestANewLeaderWritesTheLineOfADeadOne(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		all, target := farLink(t, b)
		first := b.leads(all)
		reached := b.last.arm(first)
		answer := make(chan error, 1)
		go func() {
			_, err := other(all, first).client().Pause(client.WithRequestID(t.Context(), "00000000000000d1"), "orders", "orders-dr", "why")
			answer <- err
		}()
		require.Equal(t, "00000000000000d1", <-reached)
		first.kill(false)
		var refused *client.Error
		require.ErrorAs(t, <-answer, &refused)
		require.Equal(t, 503, refused.Status)
		require.Contains(t, refused.Text, "may still be applied")
		require.Empty(t, first.leaderLines("00000000000000d1"))

		second := b.leads(all)
		b.eventually("the line is written", func() bool { return len(second.leaderLines("00000000000000d1")) > 0 })
		line := second.leaderLines("00000000000000d1")[0]
		require.Positive(t, line["index"])
		for _, member := range []string{"time", "index", "level", "node", "msg"} {
			delete(line, member)
		}
		require.Equal(t, map[string]any{
			"component": "audit", "event": "remote_child.pause", "actor": "admin", "target": "orders/orders-dr", "outcome": "committed",
			"request_id": "00000000000000d1", "replayed": true,
		}, line)
		require.True(t, second.child("orders", "orders-dr").Paused, "it was committed")

		first.start()
		b.ready(first)
		for i, request := range []string{"00000000000000d2", "00000000000000d3"} {
			time.Sleep(6 * time.Second)
			most := 7 + i
			_, err := first.client().Remotes().Patch(client.WithRequestID(t.Context(), request), "dr", wire.PatchRemote{Limits: &wire.PatchLimits{MaxInFlight: &most}})
			require.NoError(t, err)
		}
		before := replayed(all)
		require.Equal(t, 1, before["00000000000000d1"])
		second.kill(false)
		third := b.leads(all)
		require.NotSame(t, second, third)
		time.Sleep(5 * time.Second)
		before["00000000000000d3"]++ // the one write whose line nobody had confirmed
		require.Equal(t, before, replayed(all))
		second.start()
		b.ready(second)
		time.Sleep(5 * time.Second)
		require.Equal(t, before, replayed(all), "who follows writes nothing")
		for _, m := range append(all, target) {
			require.NotContains(t, m.log.String(), remotePassword)
			m.stop()
		}
	})
}

// A single node that died between commit and line writes it at its next start, also out of a snapshot, and no more once it is confirmed.
//
// covers: WRT-11
func TestASingleNodeWritesTheLineOfItsLastLife(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("alone")
		m.start()
		alone := []*machine{m}
		reached := b.last.arm(m)
		answer := make(chan error, 1)
		put := func(name, request string) error {
			_, err := m.client().Remotes().Create(client.WithRequestID(t.Context(), request), wire.CreateRemote{
				Name: name, URL: "https://" + name + ":7942", Username: linkUser, Password: remotePassword,
			})
			return err
		}
		go func() { answer <- put("one", "00000000000000e1") }()
		require.Equal(t, "00000000000000e1", <-reached)
		m.kill(true)
		require.Error(t, <-answer)
		require.Empty(t, m.leaderLines(""))

		m.start()
		b.eventually("the line is written", func() bool { return len(m.leaderLines("")) > 0 })
		require.Equal(t, map[string]int{"00000000000000e1": 1}, replayed(alone))
		require.NoError(t, m.node.Snapshot())
		m.stop()
		m.start() // nothing has confirmed it meanwhile
		b.eventually("the line is repeated", func() bool { return len(m.leaderLines("")) > 1 })
		require.NoError(t, put("two", "00000000000000e2"))
		require.NoError(t, put("three", "00000000000000e3"))
		m.stop()
		m.start()
		time.Sleep(time.Second)
		require.Equal(t, map[string]int{"00000000000000e1": 2, "00000000000000e3": 1}, replayed(alone))
		m.stop()
	})
}
