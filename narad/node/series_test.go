package node_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
)

// What metrics.md lists, by type: name{labels}, without the prefix narad_. A node has these series and no others.
var seriesOfMetricsMD = map[string][]string{
	"gauge": {
		"fanout_lag_messages{parent,child,partition}", "fanout_due_lag_seconds{parent,child,partition}",
		"fanout_remote_state{parent,child,partition,state}", "fanout_remote_lag_seconds{parent,child,partition}",
		"fanout_remote_retention_headroom_seconds{parent,child,partition}", "fanout_remote_last_success_timestamp_seconds{parent,child}",
		"remote_rtt_seconds{remote}", "remote_gate_backoff_seconds{remote}", "remote_held_bytes{}", "remote_chunk_bytes_limit{remote}",
		"remote_credential_state{remote,state}", "remote_credential_age_seconds{remote}", "remote_credential_key_current{remote}",
		"remote_key_seals{key}", "remote_key_age_seconds{key}", "remotes_allowlist_configured{}", "remotes_plaintext_raft{}",
		"consumer_lag_messages{topic,partition}", "ingress_dispatch_backlog_records{}", "ingress_wal_failed{}", "topics_total{}", "partitions_total{}",
		"inflight_size{}", "acked_ahead_size{}", "oldest_unconsumed_message_age_seconds{}", "raft_state{state}", "raft_has_leader{}",
		"moves_blocked{reason}", "decommission_blocked{node,reason}",
	},
	"counter": {
		"fanout_committed_total{parent,child}", "fanout_child_dropped_messages{parent,child}", "fanout_remote_check_failures_total{parent,child}",
		"fanout_remote_skipped_records_total{parent,child}", "fanout_remote_rereads_total{parent,child}",
		"remote_requests_total{remote,code}", "remote_errors_total{remote,class}", "remote_resent_records_total{remote}",
		"remote_wire_bytes_total{remote}", "remote_body_bytes_total{remote}", "remote_credential_decrypts_total{remote}", "remote_seals_total{}", "remote_reseal_opens_total{}",
		"remote_destination_refused_total{remote,reason}", "messages_produced_total{topic,partition}", "bytes_produced_total{}",
		"messages_consumed_total{}", "bytes_consumed_total{}", "produce_rejections_total{topic,reason}",
		"http_requests_total{route,method,status}", "http_batch_body_budget_rejections_total{}", "errors_total{component,kind}",
		"consume_empty_total{}", "consumer_dropped_messages{}", "ack_extended_total{}", "nack_total{}",
	},
	"histogram": {
		"fanout_batch_records{}", "fanout_batch_bytes{}", "remote_request_seconds{remote}", "remote_inflight_wait_seconds{remote}",
		"http_request_duration_seconds{route,method}", "storage_fsync_duration_seconds{topic,partition}", "consume_wait_seconds{topic,outcome}",
	},
}

var description = regexp.MustCompile(`^Desc\{fqName: "narad_([a-z_]+)",.* variableLabels: \{([a-z_,]*)\}\}$`)

// registered lists the series that a node has registered, as name{labels}.
func registered(t *testing.T, m *machine) []string {
	t.Helper()
	ch := make(chan *prometheus.Desc, 1000)
	m.node.DescribeMetrics(ch)
	close(ch)
	var out []string
	for d := range ch {
		parts := description.FindStringSubmatch(d.String())
		require.NotNil(t, parts, d.String())
		out = append(out, parts[1]+"{"+parts[2]+"}")
	}
	return out
}

// The series of a node are those of metrics.md by name and labels, and of the type that the table says once they have a value.
//
// covers: BRK-13
func TestTheSeriesAreThoseOfTheList(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		var want []string
		types := map[string]string{}
		for kind, list := range seriesOfMetricsMD {
			want = append(want, list...)
			for _, s := range list {
				name, _, _ := strings.Cut(s, "{")
				types[name] = kind
			}
		}
		have := registered(t, p.source)
		require.ElementsMatch(t, want, have)

		p.produce(0, 12)
		p.shipped(12)
		_, page := p.source.get("/metrics", true)
		shown := regexp.MustCompile(`(?m)^# TYPE narad_(\S+) (\S+)$`).FindAllStringSubmatch(page, -1)
		require.Greater(t, len(shown), 40)
		for _, s := range shown {
			require.Equal(t, types[s[1]], s[2], s[1])
		}
		p.source.stop()
		p.target.stop()
	})
}

// The age of the oldest record that nobody has consumed grows with time and ends with its ack; moves that cannot go on are counted by reason,
// none on a node alone. Asking for it keeps no partition from its rest.
//
// covers: BRK-13
func TestTheOldestUnconsumedRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.config.Storage.IdleLogEvictionMS = 70_000
		m.start()
		topic := m.create("logs")
		age := func() float64 {
			status, page := m.get("/metrics", true)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, "0", metric(page, `narad_moves_blocked{reason="source_dead"}`))
			require.Equal(t, "0", metric(page, `narad_moves_blocked{reason="target_dead"}`))
			v, err := strconv.ParseFloat(metric(page, "narad_oldest_unconsumed_message_age_seconds"), 64)
			require.NoError(t, err)
			return v
		}
		require.Zero(t, age())
		m.produce("logs", "a", "first")
		b.eventually("committed", func() bool { return m.count("logs") == 1 })
		time.Sleep(10 * time.Second)
		m.produce("logs", "a", "second")
		b.eventually("committed", func() bool { return m.count("logs") == 2 })
		require.InDelta(t, 10, age(), 0.5)
		for range 13 {
			time.Sleep(10 * time.Second)
			age()
		}
		require.InDelta(t, 140, age(), 0.5)
		require.Zero(t, m.handles(topic), "no scrape reads a file again")

		msg, err := m.client().Consume(t.Context(), "logs", client.ConsumeOptions{})
		require.NoError(t, err)
		require.NoError(t, m.client().Settle(t.Context(), "logs", msg.ReceiptHandle, client.Ack))
		require.InDelta(t, 130, age(), 0.5)
		m.stop()
	})
}
