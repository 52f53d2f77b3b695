package node_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/narad/client"
	"narad.example/narad/config"
)

// seriesOf lists the names of a metrics page that begin with narad_, without a histogram's suffixes.
func seriesOf(page string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^# TYPE narad_(\S+) `).FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// metric is the value of a series on a page, "" when it is not there.
func metric(page, series string) string {
	for line := range strings.Lines(page) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// The page has every series of metrics.md that this release counts, once a link runs; the list is what an operator may build on.
//
// covers: BRK-13
func TestTheMetricsPage(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		p := link(t, b)
		p.produce(0, 12)
		p.shipped(12)
		p.source.consume("orders", 4)
		_, err := p.source.client().Consume(t.Context(), "orders", client.ConsumeOptions{})
		require.NoError(t, err)
		status, _ := p.source.get("/no/such/route", true)
		require.Equal(t, http.StatusNotFound, status)
		err = p.source.client().Produce(t.Context(), "orders-dr", []byte("x"), client.ProduceOptions{})
		require.ErrorContains(t, err, "409")
		status, page := p.source.get("/metrics", false)
		require.Equal(t, http.StatusUnauthorized, status, page)
		_, page = p.source.get("/metrics", true)
		have := seriesOf(page)
		for _, want := range []string{
			"fanout_lag_messages", "fanout_due_lag_seconds", "fanout_committed_total", "fanout_batch_records", "fanout_batch_bytes",
			"fanout_remote_state", "fanout_remote_lag_seconds", "fanout_remote_retention_headroom_seconds",
			"fanout_remote_last_success_timestamp_seconds",
			"remote_requests_total", "remote_request_seconds", "remote_gate_backoff_seconds", "remote_inflight_wait_seconds",
			"remote_wire_bytes_total", "remote_body_bytes_total", "remote_credential_state", "remote_credential_decrypts_total",
			"remote_seals_total", "remotes_allowlist_configured", "remotes_plaintext_raft",
			"messages_produced_total", "bytes_produced_total", "messages_consumed_total", "bytes_consumed_total",
			"produce_rejections_total", "http_requests_total", "http_request_duration_seconds", "consumer_lag_messages",
			"ingress_dispatch_backlog_records", "ingress_wal_failed", "storage_fsync_duration_seconds", "topics_total", "partitions_total",
			"http_batch_body_budget_rejections_total", "inflight_size", "acked_ahead_size", "consumer_dropped_messages",
			"ack_extended_total", "nack_total", "raft_state", "raft_has_leader", "consume_wait_seconds", "consume_empty_total",
			"remote_rtt_seconds", "remote_credential_age_seconds", "remote_credential_key_current", "remote_key_seals", "remote_key_age_seconds",
		} {
			require.Contains(t, have, want)
		}
		for _, line := range []string{
			`narad_raft_state{state="leader"} 1`, "narad_raft_has_leader 1", "narad_ingress_wal_failed 0", "narad_inflight_size 1",
			"narad_topics_total 2", "narad_partitions_total 3", "narad_remote_seals_total 1", "narad_bytes_produced_total 108",
			"narad_messages_consumed_total 5", `narad_produce_rejections_total{reason="remote_child",topic="orders-dr"} 1`,
			"narad_consume_empty_total 0", `narad_remote_credential_key_current{remote="dr"} 1`, `narad_remote_key_seals{key="current"} 1`,
			`narad_remote_credential_decrypts_total{remote="dr"} 1`, `narad_remote_credential_state{remote="dr",state="ready"} 1`,
			`narad_fanout_committed_total{child="orders-dr",parent="orders"} 12`,
			`narad_fanout_remote_state{child="orders-dr",parent="orders",partition="0",state="running"} 1`,
			`narad_http_requests_total{method="GET",route="unmatched",status="404"} 1`,
		} {
			require.Contains(t, page, line+"\n")
		}
		lag := 0
		for _, m := range regexp.MustCompile(`(?m)^narad_consumer_lag_messages\{.*\} (\d)$`).FindAllStringSubmatch(page, -1) {
			lag += int(m[1][0] - '0')
		}
		require.Equal(t, 8, lag)
		require.NoError(t, p.source.client().Detach(t.Context(), "orders", "orders-dr", true))
		b.eventually("a cursor that stopped has no series", func() bool {
			_, now := p.source.get("/metrics", true)
			return !strings.Contains(now, "narad_fanout_remote_state{")
		})
		require.NoError(t, p.source.client().Remotes().Delete(t.Context(), "dr", false))
		b.eventually("a remote that is gone has no gauges", func() bool {
			_, page = p.source.get("/metrics", true)
			return !regexp.MustCompile(`narad_remote_(rtt_seconds|credential_\w+|gate_backoff_seconds|chunk_bytes_limit|key_age_seconds)\{.*\} .*\n`).
				MatchString(strings.ReplaceAll(page, `narad_remote_credential_decrypts_total{`, ""))
		})
		require.NoError(t, p.source.client().DeleteTopic(t.Context(), "orders", false))
		_, page = p.source.get("/metrics", true)
		require.NotContains(t, page, "narad_consumer_lag_messages{")
		p.source.stop()
		p.target.stop()
	})
}

// Probes need no credentials; the metrics listener has the page and the probes and nothing else.
//
// covers: BRK-13
func TestProbesAndTheMetricsListener(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.config.HTTP.MetricsAddr = ":9100"
		m.start()
		status, body := m.get("/healthz", false)
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"status":"ok"}`, body)
		status, body = m.get("/readyz", false)
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"status":"ready"}`, body)
		status, _ = m.get("/metrics", true)
		require.Equal(t, http.StatusNotFound, status, "it is elsewhere")
		get := func(path string) int {
			res, err := b.http.Get("http://node-1:9100" + path)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res.StatusCode
		}
		require.Equal(t, http.StatusOK, get("/metrics"))
		require.Equal(t, http.StatusOK, get("/readyz"))
		require.Equal(t, http.StatusNotFound, get("/v1/topics"))
		m.stop()
	})
}

// Without a password from the environment the root admin gets one of its own, in a file that the log names and does not quote; a
// restart keeps it.
//
// covers: BRK-08
func TestTheRootAdminOfANewNode(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		m := b.machine("node-1")
		m.secrets = config.Secrets{}
		m.start()
		raw := m.read("/node-1/admin-password")
		password := strings.TrimSpace(raw)
		require.Len(t, password, 32)
		require.Len(t, m.log.with("the root admin has a random password; read it and remove the file"), 1)
		m.kill(true)
		m.start()
		require.Equal(t, raw, m.read("/node-1/admin-password"))
		c := client.New(client.Options{BaseURL: "http://node-1:" + apiPort, User: "admin", Password: password, HTTP: b.http})
		_, err := c.Topics(t.Context(), 10, "")
		require.NoError(t, err)
		m.stop()
		require.NotContains(t, m.log.String(), password)
	})
}
