package bench

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFloorBodyIsABatchAndReadsBack(t *testing.T) {
	body := []byte(bodyOpen)
	for i := range 20 {
		body = appendRecord(body, record{[]byte(key(i)), payload(nil, i)})
	}
	body = append(body, bodyClose...)
	var batch struct {
		Messages []struct {
			Key     string          `json:"key"`
			Payload json.RawMessage `json:"payload"`
		} `json:"messages"`
	}
	require.NoError(t, json.Unmarshal(body, &batch))
	got, err := floorParse(body, nil)
	require.NoError(t, err)
	require.Len(t, got, 20)
	for i, r := range got {
		require.Equal(t, batch.Messages[i].Key, string(r.key))
		require.Equal(t, string(batch.Messages[i].Payload), string(r.payload))
		require.Len(t, r.payload, RecordBytes)
	}
}

func TestFloorParseRefusesWhatIsNoJSON(t *testing.T) {
	good := append(appendRecord([]byte(bodyOpen), record{[]byte("k"), []byte(`{"a":[1,"x"]}`)}), bodyClose...)
	_, err := floorParse(good, nil)
	require.NoError(t, err)
	for _, bad := range [][2]string{{`[1,`, `[1`}, {`"x"`, `"x`}, {`{"a"`, `{a`}, {`]}`, `]`}, {`}}`, `}`}} {
		_, err := floorParse(bytes.Replace(good, []byte(bad[0]), []byte(bad[1]), 1), nil)
		require.ErrorIs(t, err, errBody, "%q", bad)
	}
}
