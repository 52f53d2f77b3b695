package metrics

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// covers: BRK-13
func TestSeriesCarryThePrefixAndTheirLabels(t *testing.T) {
	s := New()
	s.Remote.Resent.WithLabelValues("dr").Add(3)
	s.Collect(s.Fanout.State)
	s.Fanout.State.WithLabelValues("orders", "copy", "0", "running").Set(1)
	s.GaugeFunc("ingress_dispatch_backlog_records", "Accepted records not yet committed.", func() float64 { return 5 })
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`narad_remote_resent_records_total{remote="dr"} 3`,
		`narad_fanout_remote_state{child="copy",parent="orders",partition="0",state="running"} 1`,
		`narad_ingress_dispatch_backlog_records 5`, "go_goroutines",
	} {
		require.Contains(t, rec.Body.String(), want)
	}
}

func TestTwoNodesInOneProcess(t *testing.T) {
	a, b := New(), New()
	a.Broker.BytesProduced.Add(1)
	rec := httptest.NewRecorder()
	b.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, rec.Body.String(), "narad_bytes_produced_total 0")
}

func TestASimulatedNodeShowsNothingOfTheProcess(t *testing.T) {
	s := Simulated()
	s.Broker.BytesProduced.Add(1)
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Contains(t, rec.Body.String(), "narad_bytes_produced_total 1")
	require.NotContains(t, rec.Body.String(), "\ngo_")
	require.NotContains(t, rec.Body.String(), "\nprocess_")
}
