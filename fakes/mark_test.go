package fakes

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"narad.example/harness/ledger"
)

// covers: LOG-01
func TestEveryAnswerCarriesTheMarker(t *testing.T) {
	q := asked{records: 2, place: 1, path: "/v1/topics/t/produce/batch", topicID: "0123456789abcdef"}
	for _, e := range Catalogue {
		if e.build == nil || e.early {
			continue
		}
		a := e.build(Reply{}, q)
		m := a.marked()
		if a.how == verbatim || a.how == silence || a.how == closeFirst || a.how == resetFirst {
			continue
		}
		require.Equal(t, ledger.AnswerMarker, m.header[markHeader], e.Name)
		if a.status >= http.StatusBadRequest && a.header["Content-Type"] == "application/json" {
			require.Contains(t, string(m.body), ledger.AnswerMarker, e.Name)
		}
	}
	require.JSONEq(t, `{"error":"no `+ledger.AnswerMarker+`"}`, string(mark([]byte("{\"error\":\"no\"}\n"))))
	require.Equal(t, "404 page not found\n", string(mark([]byte("404 page not found\n"))))
}

// covers: SND-08
func TestARecordThatNamesItsPartitionIsSeen(t *testing.T) {
	records, err := decodeBatch([]byte(`{"messages":[{"payload":1},{"payload":2,"partition":0}]}`), "")
	require.NoError(t, err)
	require.True(t, pinned(records))
	require.False(t, pinned(records[:1]))
}
